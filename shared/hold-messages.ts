// Why a workspace is paused, as the refusals and `box billing` say it.
import type { HOLDS } from './field-values.ts'

export const HOLD_MESSAGES: Record<(typeof HOLDS)[number], string> = {
  mining:
    'The workspace is paused: its boxes appear to mine cryptocurrency. Contact the operator of this Boxwood.',
  cpu: 'The workspace is paused: its boxes have used all of their CPU for a long time on free credit. Add credit, or contact the operator of this Boxwood.',
}
