// The stored form of the labels of a box.
import type { LabelChanges } from '../../shared/api/labels.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'

export const NO_LABELS = '{}'

/** The coordinator wrote the column from validated labels. */
export const parseLabels = (stored: string): Record<string, string> =>
  JSON.parse(stored) as Record<string, string>

/** @param stored the labels that the changes apply to @throws ApiError invalid_labels for too many labels */
export function changeLabels(stored: string, changes: LabelChanges): string {
  const labels = Object.entries({ ...parseLabels(stored), ...changes }).filter(([, value]) => value !== null)
  if (labels.length > LIMITS.boxLabels)
    throw new ApiError('invalid_labels', `labels must be at most ${LIMITS.boxLabels} labels of a box`)
  return JSON.stringify(Object.fromEntries(labels.sort(([a], [b]) => (a < b ? -1 : 1))))
}
