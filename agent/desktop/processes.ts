// Terminates the processes of a desktop.
import { ApiError } from '../../shared/errors.ts'
import { terminateTree } from '../exec/terminate-tree.ts'
import type { Leader } from './session-record.ts'

/**
 * @param leader null: it is not known, and the processes are found only by their environment
 * @throws ApiError exec_failed
 */
export async function endTree(processId: string, leader: Leader | null): Promise<void> {
  const { pid, startTime } = leader ?? { pid: 0, startTime: 0 }
  const { survivors } = await terminateTree({ pid, startTime, processId })
  if (survivors.length > 0)
    throw new ApiError(
      'exec_failed',
      `${survivors.length} processes of the desktop survived SIGKILL: they are blocked in the kernel or run as another user.`,
    )
}
