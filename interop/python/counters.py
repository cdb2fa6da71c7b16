"""Counter."""
from world import error


def counter(w):
    """No number is handed out twice."""
    handed_out = []

    def count(_):
        mine = w.client().Counter(w.path + "/number")
        for _ in range(4):
            mine += 1
            handed_out.append(mine.post_value)

    w.together(3, count)
    mine = w.client().Counter(w.path + "/number")
    mine -= 2
    return "%d numbers, now %d" % (len(set(handed_out)), mine.value)


def other_counters(w):
    client = w.client()
    number = client.Counter(w.path + "/float", default=1.5)
    number += 0.5
    curator = client.Counter(w.path + "/curator", support_curator=True)
    curator += 258
    wrong = error(lambda: client.Counter(w.path + "/float").value)
    return "float %s, curator %d as %s, %s" % (
        number.value, curator.value, client.get(w.path + "/curator")[0].hex(), wrong)


SCENARIOS = {"counter": counter, "other-counters": other_counters}
