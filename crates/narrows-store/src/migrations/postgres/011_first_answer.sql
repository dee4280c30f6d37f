-- The first answer of each session: those that have the same one are forks of each other.
CREATE TABLE first_answer (session bigint PRIMARY KEY, answer text NOT NULL);
CREATE INDEX first_answer_of ON first_answer (answer);
-- Answers by their message, whatever the language of the database.
CREATE INDEX usage_message ON usage (id COLLATE "C");
