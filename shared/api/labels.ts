// Schemas of the labels of boxes: keys, values, and the selection of boxes by label.
import { z } from 'zod'
import { LIMITS } from '../limits.ts'

const KEY_SOURCE = '[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?'
const LABEL_KEY_PATTERN = new RegExp(`^${KEY_SOURCE}$`)
const LABEL_KEY_RULE =
  'must be 1 to 63 lowercase letters, digits and any of ._/-, and start and end with a letter or digit'
const LABEL_VALUE_RULE = 'must be a string of at most 63 characters without control characters'
export const LABELS_RULE = `A key has 1 to 63 lowercase letters, digits and any of ._/-, and starts and ends with a letter or digit. A value has at most 63 characters without control characters; it may be empty. At most ${LIMITS.boxLabels} labels`

const isLabelValue = (text: string): boolean => /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{0,63}$/u.test(text)

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

/** value null: any value. */
export type LabelSelector = { key: string; value: string | null }

const SELECTOR_RULE = 'must be the key of a label, or key=value'

export function parseLabelSelector(text: string): LabelSelector | null {
  const separator = text.indexOf('=')
  const key = separator < 0 ? text : text.slice(0, separator)
  const value = separator < 0 ? null : text.slice(separator + 1)
  return LABEL_KEY_PATTERN.test(key) && (value === null || isLabelValue(value)) ? { key, value } : null
}

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
