//! Tokens and one-time tickets.

use super::Store;
use crate::access::tokens::{
    COLUMNS, CREATOR_EXISTS, TOKEN_DAMAGED, Token, WITH_DESCENDANTS, join_lines, read_verified,
};
use crate::checksum;
use crate::cluster::changes::{Deleted, record_deletion};
use crate::db::{Value, params};
use crate::error::{Error, Result};
use crate::ids::now;

impl Store {
    /// Inserts or replaces a token.
    pub async fn keep_token(&self, token: Token) -> Result<()> {
        self.revocations().remove(self.dir(), &token.hash)?;
        self.write(256, move |db| {
            // A secret belongs to one token.
            let other = "DELETE FROM token WHERE hash = ?1 AND id <> ?2";
            db.execute_pipelined(other, &params![token.hash[..], token.id])?;
            let scopes = token.scopes.to_string();
            let [sessions, tags] =
                [&token.sight.sessions, &token.sight.tags].map(|list| join_lines(list.as_ref()));
            let (kind, hash) = (token.kind.name(), &token.hash[..]);
            let columns = params![
                token.id, hash, kind, token.name, scopes, sessions, tags, token.created, token.expires
            ];
            let sum = checksum::of_values(&columns);
            let values: Vec<Value<'_>> = columns.into_iter().chain(params![sum]).collect();
            db.execute_pipelined(
                "INSERT INTO token (id, hash, kind, name, scopes, sessions, tags, created, expires, crc)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                 ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, kind = excluded.kind,
                 name = excluded.name, scopes = excluded.scopes, sessions = excluded.sessions,
                 tags = excluded.tags, created = excluded.created, expires = excluded.expires,
                 used = NULL, crc = excluded.crc",
                &values,
            )
        })
        .await
    }

    /// Rewrites a token whose row is damaged; false if it is intact or missing. Tokens created by
    /// it stay valid.
    pub async fn mend_token(&self, token: &Token) -> Result<bool> {
        let (id, hash) = (token.id.clone(), token.hash);
        let is_damaged = self
            .read(move |db| {
                let sql = format!("SELECT {COLUMNS} FROM token WHERE id = ?1 OR hash = ?2");
                let read_verified = db.query_all(&sql, &params![id, hash[..]], |r| {
                    Ok(checksum::row_matches(r, &[0, 1, 2, 3, 4, 5, 6, 7, 8], 9).unwrap_or(false))
                })?;
                Ok(read_verified.contains(&false))
            })
            .await?;
        if !is_damaged {
            return Ok(false);
        }
        self.keep_token(token.clone()).await?;
        tracing::warn!(token = %token.id, "rewrote a damaged token");
        // Other tokens may be damaged too: reading them reports those again.
        self.damage_registry().remove(TOKEN_DAMAGED);
        self.tokens().await?;
        Ok(true)
    }

    /// Inserts a token created by another one; fails if that one was revoked.
    pub async fn keep_made_token(&self, token: Token, maker: &str) -> Result<()> {
        let (id, of) = (token.id.clone(), maker.to_owned());
        self.write(64, move |db| {
            let select = "SELECT id FROM token WHERE id = ?1 /*pg FOR SHARE*/";
            if db.query_opt(select, &params![of], |r| r.get::<String>(0))?.is_none() {
                return Err(Error::NotFound("token"));
            }
            let keep = "INSERT INTO made (token, maker, crc) VALUES (?1, ?2, ?3)
                 ON CONFLICT (token) DO UPDATE SET maker = excluded.maker, crc = excluded.crc";
            db.execute_pipelined(keep, &params![id, of, checksum::of_values(&params![id, of])])
        })
        .await?;
        self.keep_token(token).await
    }

    /// The id of a token and of all tokens it created, directly or indirectly.
    pub async fn made_by(&self, id: &str) -> Result<Vec<String>> {
        let id = id.to_owned();
        self.read(move |db| {
            let sql = format!("{WITH_DESCENDANTS} SELECT id FROM these");
            db.query_all(&sql, &params![id], |r| r.get(0))
        })
        .await
    }

    /// Revokes a token and all tokens it created. Returns the ids of those that existed.
    pub async fn revoke_token(&self, id: &str) -> Result<Vec<String>> {
        let of = id.to_owned();
        let found = self
            .read(move |db| {
                let sql = format!(
                    "{WITH_DESCENDANTS} SELECT hash, expires FROM token WHERE id IN (SELECT id FROM these)"
                );
                db.query_all(&sql, &params![of], |r| Ok((r.get(0)?, r.get(1)?)))
            })
            .await?;
        // The revocation file first: it also holds if the database is replaced by a backup.
        self.revocations().add(self.dir(), &found)?;
        let of = id.to_owned();
        self.write(64, move |db| {
            let sql =
                format!("{WITH_DESCENDANTS} DELETE FROM token WHERE id IN (SELECT id FROM these) RETURNING id");
            let ids: Vec<String> = db.query_all(&sql, &params![of], |r| r.get(0))?;
            if ids.is_empty() {
                return Err(Error::NotFound("token"));
            }
            for id in &ids {
                db.execute_pipelined("DELETE FROM made WHERE token = ?1", &params![id])?;
                record_deletion(db, Deleted::Token, id)?;
            }
            Ok(ids)
        })
        .await
    }

    /// All tokens that have not expired, oldest first; without tickets.
    pub async fn tokens(&self) -> Result<Vec<Token>> {
        let mut tokens = self
            .read(|db| {
                let tokens = db.query_all(
                    &format!(
                        "SELECT {COLUMNS} FROM token WHERE coalesce(expires, ?1) >= ?1
                         AND kind <> 'ticket' AND {CREATOR_EXISTS} ORDER BY created, id"
                    ),
                    &params![now()],
                    read_verified,
                )?;
                Ok(tokens.into_iter().flatten().collect::<Vec<Token>>())
            })
            .await?;
        tokens.retain(|token| !self.revocations().contains(&token.hash));
        Ok(tokens)
    }

    /// Finds a token by the hash of its secret.
    pub async fn token(&self, hash: [u8; 32]) -> Result<Option<Token>> {
        if self.revocations().contains(&hash) {
            return Ok(None);
        }
        self.read(move |db| {
            let sql = format!(
                "SELECT {COLUMNS} FROM token WHERE hash = ?1 AND kind <> 'ticket' AND {CREATOR_EXISTS}"
            );
            Ok(db.query_opt(&sql, &params![hash[..]], read_verified)?.flatten())
        })
        .await
    }

    /// Redeems a ticket, which works once.
    pub async fn take_ticket(&self, hash: [u8; 32]) -> Result<Option<Token>> {
        self.write(64, move |db| {
            let sql = format!(
                "DELETE FROM token WHERE hash = ?1 AND kind = 'ticket' RETURNING {COLUMNS}"
            );
            Ok(db.query_opt(&sql, &params![hash[..]], read_verified)?.flatten())
        })
        .await
    }
}
