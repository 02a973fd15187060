// Lists the coordinators that share the configured database, for `box status` and `box doctor`. Prints ReplicaStatus[] as one line of JSON.
import { readPostgres } from '../db/postgres/read.ts'
import { listStatuses } from '../replicas/list-statuses.ts'
import { loadConfig } from './config.ts'

try {
  const { databaseUrl } = loadConfig(process.env)
  const replicas = databaseUrl === null ? [] : await readPostgres(databaseUrl, listStatuses)
  process.stdout.write(`${JSON.stringify(replicas)}\n`)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
