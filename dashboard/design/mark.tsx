// The mark of Boxwood.
import { MARK_BOX, MARK_CORE, MARK_RING, MARK_SIZE } from '../../shared/mark.ts'

const { strokeWidth, ...ring } = MARK_RING

/** @param size in pixels */
export function Mark({ size = 26 }: { size?: number }) {
  return (
    <svg class="mark" width={size} height={size} viewBox={`0 0 ${MARK_SIZE} ${MARK_SIZE}`} aria-hidden="true">
      <rect {...MARK_BOX} fill="currentColor" />
      <rect {...ring} fill="none" stroke="var(--background)" stroke-width={strokeWidth} />
      <rect {...MARK_CORE} fill="var(--background)" />
    </svg>
  )
}
