// What the coordinator refuses to do with an enrolled machine, whose power, size and files it does not manage.
import type { PatchBoxRequest } from '../../shared/api/boxes.ts'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import type { BoxRow } from '../db/schema.ts'

const REFUSALS = {
  suspend: ['no_volume', 'cannot be suspended. Shut it down on the machine itself.'],
  schedule: [
    'no_volume',
    'is never suspended and has no snapshots, so it cannot have a deadline or automatic snapshots.',
  ],
  resize: ['resize_rejected', 'has the size of the machine. Its tier cannot be changed.'],
  move: ['move_rejected', 'cannot be moved. Its region is only a label.'],
} as const satisfies Record<string, readonly [ErrorCode, string]>

/** Throws when the box is an enrolled machine. */
export function assertManaged({ kind, hostname }: BoxRow, request: keyof typeof REFUSALS): void {
  if (kind !== 'machine') return
  const [code, problem] = REFUSALS[request]
  throw new ApiError(code, `Box ${hostname} is an enrolled machine: it ${problem}`)
}

/** Throws no_volume for a setting of an enrolled machine that would have no effect. null turns a setting off. */
export function assertHasSchedules(box: BoxRow, input: PatchBoxRequest): void {
  const { autoPauseMin, ttlMinutes, pauseAt, autoSnapshotHours, autoSnapshotKeep } = input
  const settings = [autoPauseMin, ttlMinutes, pauseAt, autoSnapshotHours, autoSnapshotKeep]
  if (settings.some((value) => value != null)) assertManaged(box, 'schedule')
}
