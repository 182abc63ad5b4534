from pathlib import Path
def sub(s, a, b):
    assert s.count(a)==1, (s.count(a), a)
    return s.replace(a,b)
p=Path('src/dws/planner/backfill.py'); s=p.read_text()
s=sub(s,'''        """The first `protected_depth` of every kind, which is a set of pools that would do, start now or
        get their earliest fit. Returns who still waits."""
''','''        """The first `protected_depth` of every kind, which is a set of pools that would do, start now or
        get their earliest fit. Returns who still waits.

        Who cannot start yet, or not at all, takes nobody's protection away.
        """
''')
s=sub(s,'''            early = max(request.not_again_before, request.demand.not_before) > self.now
            pools = frozenset() if early else self._pools_of(request)
            if not pools or depth[pools]''','''            backs_off = request.not_again_before > self.now
            pools = frozenset() if backs_off else self._pools_of(request)
            if not pools or depth[pools]''')
s=sub(s,'''                self.protected.add(request.id)
                depth[pools] += 1
''','''                self.protected.add(request.id)
                depth[pools] += request.demand.not_before <= self.now
''')
p.write_text(s)
p=Path('src/dws/planner/advise.py'); s=p.read_text()
p=Path('src/dws/planner/explain.py'); s=p.read_text()
