// The labels of boxes: their options, the changes of box label, and their text.
import { Option } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import {
  isLabelValue,
  LABEL_KEY_PATTERN,
  LABEL_KEY_RULE,
  type LabelSelector,
  parseLabelSelector,
} from '../../shared/labels.ts'
import type { FilterKey } from '../lists/filters.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

type Labels = Record<string, string>

/** Such as `team=web`; the key alone where the value is empty. */
export const formatLabels = (labels: Labels | undefined): string[] =>
  Object.entries(labels ?? {}).map(([key, value]) => (value === '' ? key : `${key}=${value}`))

/** Parses --label KEY=VALUE of a new box. Collects repeated options. @throws CliError */
export function parseNewLabel(text: string, previous: Labels = {}): Labels {
  const [key, value] = parseLabel('--label', text)
  return { ...previous, [key]: value }
}

/** Collects --label KEY or KEY=VALUE. @throws CliError */
export function collectSelector(text: string, previous: LabelSelector[] = []): LabelSelector[] {
  const selector = parseLabelSelector(text)
  if (selector !== null) return [...previous, selector]
  throw new CliError(EXIT.usage, `--label must be KEY or KEY=VALUE: '${sanitize(text)}' is neither.`)
}

/** @param description such as "only the boxes with this label" */
export const createLabelOption = (description: string) =>
  new Option(
    '--label <key[=value]>',
    `${description}; can be repeated: a box must have all of them`,
  ).argParser(collectSelector)

/** The filter label=KEY and label=KEY=VALUE of lists of boxes. */
export const LABEL_FILTER: FilterKey<Box> = {
  get: ({ labels }) => Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`),
  createMatcher(text) {
    const selector = parseLabelSelector(text)
    if (selector === null)
      throw new CliError(EXIT.usage, '--filter label must be label=KEY or label=KEY=VALUE.')
    const { key, value } = selector
    return (label) => (value === null ? label.startsWith(`${key}=`) : label === `${key}=${value}`)
  },
}

/** A coordinator of an earlier version sends boxes without labels. */
export const hasLabels = ({ labels }: Pick<Box, 'labels'>, selectors: readonly LabelSelector[]): boolean =>
  selectors.every(({ key, value }) => {
    const stored = Object.hasOwn(labels ?? {}, key) ? labels[key] : undefined
    return stored !== undefined && (value === null || stored === value)
  })

/** The parameters of a list of boxes. */
export const toLabelQuery = (selectors: readonly LabelSelector[]): string =>
  selectors
    .map(({ key, value }) => `&label=${encodeURIComponent(value === null ? key : `${key}=${value}`)}`)
    .join('')

const isChange = (word: string): boolean => word.includes('=') || word.endsWith('-')

/**
 * Separates the names of boxes from the changes that follow them: `key=value` sets a label, `key-` removes it.
 * @throws CliError for a word that is neither, and for a key that is changed twice
 */
export function parseLabelWords(words: readonly string[]): {
  names: string[]
  changes: Record<string, string | null>
} {
  const first = words.findIndex(isChange)
  const names = first < 0 ? [...words] : words.slice(0, first)
  const changes: Record<string, string | null> = {}
  for (const word of first < 0 ? [] : words.slice(first)) {
    const [key, value] = parseChange(word)
    if (Object.hasOwn(changes, key))
      throw new CliError(EXIT.usage, `The label ${sanitize(key)} is changed twice.`)
    changes[key] = value
  }
  return { names, changes }
}

function parseChange(word: string): [key: string, value: string | null] {
  if (word.includes('=')) return parseLabel('A label', word)
  const key = word.slice(0, -1)
  if (word.endsWith('-') && LABEL_KEY_PATTERN.test(key)) return [key, null]
  throw new CliError(
    EXIT.usage,
    `'${sanitize(word)}' changes no label: write KEY=VALUE to set one, and KEY- to remove one.`,
  )
}

/** @param subject starts the message of an error */
function parseLabel(subject: string, text: string): [key: string, value: string] {
  const { key, value } = parseLabelSelector(text) ?? { key: text.split('=', 1)[0] ?? '', value: null }
  if (value !== null) return [key, value]
  if (!text.includes('='))
    throw new CliError(
      EXIT.usage,
      `${subject} must be KEY=VALUE: '${sanitize(text)}' has no value. For an empty one, write '${sanitize(text)}='.`,
    )
  if (!isLabelValue(text.slice(key.length + 1)))
    throw new CliError(
      EXIT.usage,
      `The value of the label ${sanitize(key)} must have at most 63 characters, and no control characters.`,
    )
  throw new CliError(EXIT.usage, `The key '${sanitize(key)}' of a label ${LABEL_KEY_RULE}.`)
}
