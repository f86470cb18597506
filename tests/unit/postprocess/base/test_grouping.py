from postprocess.base.grouping import group_pairs


def test_keys_and_values_keep_their_order():
    assert list(group_pairs([("b", 2), ("a", 3), ("b", 1)]).items()) == [("b", [2, 1]), ("a", [3])]
