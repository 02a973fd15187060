// The form of labels of boxes, and their selection.

const KEY_SOURCE = '[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?'
export const LABEL_KEY_PATTERN = new RegExp(`^${KEY_SOURCE}$`)
export const LABEL_KEY_RULE =
  'must be 1 to 63 lowercase letters, digits and any of ._/-, and start and end with a letter or digit'
export const LABEL_VALUE_RULE = 'must be a string of at most 63 characters without control characters'

export const isLabelValue = (text: string): boolean => /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{0,63}$/u.test(text)

/** value null: any value. */
export type LabelSelector = { key: string; value: string | null }

/** Parses `key` or `key=value`. null: neither. */
export function parseLabelSelector(text: string): LabelSelector | null {
  const separator = text.indexOf('=')
  const key = separator < 0 ? text : text.slice(0, separator)
  const value = separator < 0 ? null : text.slice(separator + 1)
  return LABEL_KEY_PATTERN.test(key) && (value === null || isLabelValue(value)) ? { key, value } : null
}
