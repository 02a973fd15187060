// The content of coordinator.json of a coordinator that runs in the process of the test.
import { readIdentity } from '../../coordinator/providers/parts/proc.ts'
import type { CoordinatorRecord } from '../../shared/coordinator-process.ts'

export function createCoordinatorRecord(url: string, change: Partial<CoordinatorRecord> = {}): string {
  const identity = readIdentity(process.pid)
  if (identity === null) throw new Error('This process is not in /proc.')
  return JSON.stringify({ url, ...identity, version: '0.1.0', ...change })
}
