// Lists the replicas that share the database of the coordinator on this machine.
import type { CoordinatorRecord, ReplicaStatus } from '../../shared/coordinator-process.ts'
import { runProgram } from './run-program.ts'
import { readEnvironment } from './running-process.ts'

/**
 * Returns null when the coordinator uses its database alone, and the problem when the database cannot be read.
 * @param running the coordinator; null: none runs on this machine
 */
export async function listReplicas(
  running: CoordinatorRecord | null,
  signal: AbortSignal,
): Promise<ReplicaStatus[] | { problem: string } | null> {
  const settings = running === null ? {} : readEnvironment(running.pid)
  if (!settings.BOXWOOD_REPLICA_URL) return null
  const result = await runProgram('list-replicas', { ...process.env, ...settings }, signal)
  if (result.exitCode !== 0) return { problem: result.stderr.trim().split('\n').join('; ') }
  return JSON.parse(result.stdout) as ReplicaStatus[]
}
