"""The Compute door, `/compute/{v1,beta,alpha}/…`: a translation for Google's own clients."""
