-- Made after the columns are filled. An item is in one of the first two.
CREATE INDEX item_top ON item (session) WHERE top = 1;
CREATE INDEX item_child ON item (parent) WHERE parent IS NOT NULL;
-- What an outline is made of.
CREATE INDEX item_mark ON item (kind) WHERE parent IS NULL AND kind IN ('user_message', 'todo_list');
CREATE INDEX event_end ON event (key) WHERE kind = 'prompt_response';
