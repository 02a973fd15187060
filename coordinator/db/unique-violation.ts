// Recognizes the error of a statement that would violate a unique index.

/** SQLITE_CONSTRAINT_UNIQUE. */
const SQLITE_UNIQUE = 2067
/** The SQLSTATE unique_violation. */
const POSTGRES_UNIQUE = '23505'

/** After this error, Postgres accepts no further statement of the transaction. */
export const isUniqueViolation = (error: unknown): boolean =>
  error instanceof Error &&
  (('errcode' in error && error.errcode === SQLITE_UNIQUE) ||
    ('code' in error && error.code === POSTGRES_UNIQUE))
