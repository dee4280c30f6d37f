-- Logins of browsers were kept in cookies, which browsers send to every port of a host.
DELETE FROM token WHERE kind = 'browser';
