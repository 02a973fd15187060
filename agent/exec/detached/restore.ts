// Finds the processes of earlier agents in the state directory.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { agentStartRequestSchema } from '../../../shared/api/processes.ts'
import {
  isPendingRemoval,
  type ProcessMetadata,
  preventStart,
  readMetadata,
  readStartRecord,
} from './record.ts'

/** Returns the processes in the order of their starts, and removes incomplete directories. */
export async function restoreMetadata(
  dir: string,
  removeDirectory: (dir: string) => Promise<void>,
): Promise<ProcessMetadata[]> {
  const restored: ProcessMetadata[] = []
  for (const name of await readdir(dir)) {
    const path = join(dir, name)
    // The agent was killed during the removal.
    if (isPendingRemoval(name)) await rm(path, { recursive: true, force: true })
    if (!agentStartRequestSchema.shape.processId.safeParse(name).success) continue
    const meta = readMetadata(path)
    // The agent was killed during the start, which it had not acknowledged: discard the process.
    if (meta === undefined || (readStartRecord(path) === undefined && preventStart(path)))
      await removeDirectory(path)
    else restored.push(meta)
  }
  return restored.sort((a, b) => a.startedAt - b.startedAt)
}
