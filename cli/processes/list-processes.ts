// Lists the processes of a box: from the box, or from the command history while the box is not running.
import type { ExecList, ProcessFields } from '../../shared/api/processes.ts'
import type { Client, EdgeClient } from '../connection/client.ts'
import { CliError } from '../output/exit-codes.ts'
import { listStoredProcesses } from './stored-processes.ts'

export type ProcessListing = ExecList & {
  /** The list is from the command history. */
  isStored: boolean
}

/** Newest first. */
export async function listProcesses(client: Client, edge: EdgeClient): Promise<ProcessListing> {
  try {
    return { ...(await edge.requestJson<ExecList>('GET', '/exec')), isStored: false }
  } catch (error) {
    if (edge.boxId === null || !isNotRunning(error)) throw error
    const processes: ProcessFields[] = await listStoredProcesses(client, edge.boxId)
    return { ok: true, type: 'exec.list', processes, isStored: true }
  }
}

export const isNotRunning = (error: unknown): error is CliError =>
  error instanceof CliError && error.code === 'box_not_running'
