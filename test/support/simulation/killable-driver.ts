// A database driver of a simulated coordinator: once the coordinator is killed, no statement of it takes effect.
import type { CompiledQuery, DatabaseConnection, Driver, TransactionSettings } from 'kysely'

/** What stands between a coordinator and its database and machines. */
export type FaultPoint = {
  /** Never resolves once the coordinator is killed. May throw or kill the coordinator. */
  pass(): Promise<void>
  /** Called when the coordinator is killed. */
  onKill(listener: () => void): void
  isKilled(): boolean
}

const never = <T>(): Promise<T> => new Promise<T>(() => undefined)

/** @param driver shared by all coordinators of the simulation, one after another. Has one connection. */
export function createKillableDriver(driver: Driver, point: FaultPoint): Driver {
  let held: DatabaseConnection | undefined

  point.onKill(() => {
    const connection = held
    held = undefined
    if (connection === undefined) return
    // No-op outside a transaction.
    void driver.rollbackTransaction(connection).then(() => driver.releaseConnection(connection))
  })

  const wrap = (connection: DatabaseConnection): DatabaseConnection => ({
    async executeQuery<R>(query: CompiledQuery) {
      await point.pass()
      // Another call may have killed the coordinator meanwhile.
      if (point.isKilled()) return never()
      const result = await connection.executeQuery<R>(query)
      await point.pass()
      return result
    },
    streamQuery: () => {
      throw new Error('The simulation does not stream queries.')
    },
  })
  const connections = new WeakMap<DatabaseConnection, DatabaseConnection>()
  const unwrap = (connection: DatabaseConnection) => connections.get(connection) as DatabaseConnection

  return {
    init: () => driver.init(),
    async acquireConnection() {
      if (point.isKilled()) return never()
      const connection = await driver.acquireConnection()
      if (point.isKilled()) {
        await driver.releaseConnection(connection)
        return never()
      }
      held = connection
      const wrapped = wrap(connection)
      connections.set(wrapped, connection)
      return wrapped
    },
    async releaseConnection(connection) {
      if (point.isKilled()) return never()
      held = undefined
      await driver.releaseConnection(unwrap(connection))
    },
    async beginTransaction(connection, settings: TransactionSettings) {
      await point.pass()
      if (point.isKilled()) return never()
      await driver.beginTransaction(unwrap(connection), settings)
    },
    async commitTransaction(connection) {
      await point.pass()
      if (point.isKilled()) return never()
      await driver.commitTransaction(unwrap(connection))
      await point.pass()
    },
    async rollbackTransaction(connection) {
      if (point.isKilled()) return never()
      await driver.rollbackTransaction(unwrap(connection))
    },
    destroy: async () => undefined,
  }
}
