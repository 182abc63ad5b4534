"""What other programs subscribe to: reservations as a calendar that phones and mail programs show.

Feeds turn what a reader is shown into somebody else's format; which reservations those are, and how the
feed is fetched, is the business of the API. Neighbours: `dws.model` only.
"""
