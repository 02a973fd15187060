// Schemas of the labels of boxes: keys, values, and the selection of boxes by label.
import * as z from 'zod'
import {
  isLabelValue,
  LABEL_KEY_PATTERN,
  LABEL_KEY_RULE,
  LABEL_VALUE_RULE,
  type LabelSelector,
  parseLabelSelector,
} from '../labels.ts'
import { LIMITS } from '../limits.ts'

export const LABELS_RULE = `A key has 1 to 63 lowercase letters, digits and any of ._/-, and starts and ends with a letter or digit. A value has at most 63 characters without control characters; it may be empty. At most ${LIMITS.boxLabels} labels`

const labelKeySchema = z.string().regex(LABEL_KEY_PATTERN, LABEL_KEY_RULE)
const labelValueSchema = z.string(LABEL_VALUE_RULE).refine(isLabelValue, LABEL_VALUE_RULE)

/** The labels of a new box. The service checks their number. */
export const labelsSchema = z.record(labelKeySchema, labelValueSchema)

/** The changed labels of a box; null removes a label. */
export const labelChangesSchema = z.record(labelKeySchema, labelValueSchema.nullable()).meta({
  description: `changes the labels of these keys, and keeps the others; null removes a label. ${LABELS_RULE}`,
})
export type LabelChanges = z.infer<typeof labelChangesSchema>

/** The labels in a response. */
export const boxLabelsSchema = z.record(z.string(), z.string()).meta({
  description:
    'labels by which people and scripts select boxes. They have no effect on the box. A fork, and a box from a snapshot, get those of the source.',
})

const SELECTOR_RULE = 'must be the key of a label, or key=value'

const selectorSchema = z
  .string()
  .refine((text) => parseLabelSelector(text) !== null, SELECTOR_RULE)
  .transform((text) => parseLabelSelector(text) as LabelSelector)

/** Repeated parameters of a query string. */
export const labelFilterSchema = z
  .preprocess(
    (value) => (typeof value === 'string' ? [value] : value),
    z.array(selectorSchema).max(LIMITS.boxLabels, `must be given at most ${LIMITS.boxLabels} times`),
  )
  .optional()
  .meta({
    description:
      'only the boxes with this label: its key, or key=value. Can be repeated: a box must have all of them',
  })
