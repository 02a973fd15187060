// Connections to Postgres, and their errors as messages for the operator.
import type { Client, ClientConfig, Pool, PoolConfig } from 'pg'
import { postgresTypes } from '../dialects.ts'

export type Connector = {
  /** The database, server and user, without the password. */
  readonly description: string
  createPool(config: PoolConfig): Pool
  /** Throws Errors whose messages are meant for the operator. */
  connect(config: ClientConfig): Promise<Client>
}

const CONNECT_TIMEOUT_MS = 10_000
/** Without probes, a connection through a broken network stays open for hours. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 }

/** The codes of https://www.postgresql.org/docs/current/errcodes-appendix.html. */
const INVALID_AUTHORIZATION = '28000'
const INVALID_PASSWORD = '28P01'
const UNKNOWN_DATABASE = '3D000'

/** Loads pg, which a coordinator on SQLite does not need. */
export async function createConnector(url: string): Promise<Connector> {
  const { default: pg } = await import('pg')
  const base = {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    types: postgresTypes(pg.types.getTypeParser),
    ...KEEP_ALIVE,
  }
  const { host, port, database = '', user = '' } = new pg.Client(base)
  const server = host.startsWith('/') ? host : `${host}:${port}`

  function explain(error: unknown): Error {
    const { code, message } = unwrap(error)
    const create = (text: string) => new Error(text, { cause: error })
    if (code === INVALID_PASSWORD || code === INVALID_AUTHORIZATION)
      return create(
        `Postgres at ${server} rejected the user ${user}: ${message}. Check the user and the password in BOXWOOD_DATABASE_URL.`,
      )
    if (code === UNKNOWN_DATABASE)
      return create(
        `The database ${database} does not exist at ${server}. Create it with \`createdb --owner=${user} ${database}\` as a Postgres administrator, or correct BOXWOOD_DATABASE_URL.`,
      )
    if (code === undefined || !/^[0-9A-Z]{5}$/.test(code))
      return create(
        `Postgres at ${server} cannot be reached: ${message}. Start the server, or correct BOXWOOD_DATABASE_URL.`,
      )
    return create(`The database ${database} at ${server} cannot be used: ${message}.`)
  }

  return {
    description: `${database} at ${server}, as user ${user}`,
    createPool(config) {
      const pool = new pg.Pool({ ...base, ...config })
      // The next query uses another connection. Without listeners, a lost connection would end the process.
      pool.on('error', () => undefined)
      pool.on('connect', (client) => client.on('error', () => undefined))
      return pool
    },
    async connect(config) {
      const client = new pg.Client({ ...base, ...config })
      client.on('error', () => undefined)
      try {
        await client.connect()
        return client
      } catch (error) {
        throw explain(error)
      }
    },
  }
}

/** A host with several addresses fails with an AggregateError, whose message is empty. */
function unwrap(error: unknown): { code?: string; message: string } {
  const cause = error instanceof AggregateError ? error.errors[0] : error
  if (!(cause instanceof Error)) return { message: String(cause) }
  const code = 'code' in cause && typeof cause.code === 'string' ? { code: cause.code } : {}
  return { ...code, message: cause.message }
}
