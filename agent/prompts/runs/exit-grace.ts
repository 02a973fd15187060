// How long a coding agent may keep running after its final event. Some do not exit: anthropics/claude-code#25629. Pure.
import type { MapperState } from '../providers/types.ts'

/** Counts from the last line of the coding agent. A sub-agent in the background may lead to further results. */
export const EXIT_GRACE_MS = 60_000
/** While more work is known to be in progress. Longer than the most that a tool of Claude Code may take by default. */
export const WORK_GRACE_MS = 15 * 60_000

/** null: the coding agent has not reported its end. */
export function findExitGrace({ outcome, isContinued, hasBackgroundTasks }: MapperState): number | null {
  if (outcome === null) return null
  return isContinued || hasBackgroundTasks ? WORK_GRACE_MS : EXIT_GRACE_MS
}
