// Describes a zod validation failure as one plain sentence, such as "limit must be an integer between 1 and 200".
import type * as z from 'zod'
import { toDotPath } from 'zod/v4/core'

type Issue = z.core.$ZodIssue
type IssueOf<Code extends Issue['code']> = Extract<Issue, { code: Code }>

/** Longer keys of the input are truncated in the message. */
const MAX_KEY_CHARS = 64

/**
 * Describes the first issue. A message given in the schema is used when it starts with "must"; every other text comes
 * from here, never from zod.
 * @param issues from `safeParse(value, { reportInput: true })`; without the input, missing values are not recognized
 * @param root names the validated value itself; with `query`, an array is described as a repeated parameter
 */
export function validationMessage(issues: readonly Issue[], root = 'body'): string {
  const [first] = issues
  if (first === undefined) return `${root} is not valid`
  const issue = findBranchIssue(first)
  const path = formatField(issue.path, root)
  if (issue.code === 'unrecognized_keys') {
    return `unknown field ${formatField([...issue.path, issue.keys[0] ?? ''], root)}`
  }
  if (issue.code === 'invalid_key') {
    const parent = formatField(issue.path.slice(0, -1), root)
    return `${parent} key ${JSON.stringify(truncateKey(issue.path.at(-1) ?? ''))} ${describeKeyRule(issue)}`
  }
  const isList = issue.code === 'too_big' && issue.origin === 'array'
  if (root === 'query' && Array.isArray(issue.input) && !isList) return `${path} must be given only once`
  return `${path} ${describeRule(issue)}`
}

/** The issue of the only branch of a union whose type the value has, such as a string that is too long. */
function findBranchIssue(issue: Issue): Issue {
  if (issue.code !== 'invalid_union' || issue.message.startsWith('must ')) return issue
  const matching = issue.errors.flatMap(([first]) => {
    if (first === undefined) return []
    const isOther =
      (first.code === 'invalid_type' || first.code === 'invalid_value') && first.path.length === 0
    return isOther ? [] : [first]
  })
  const [branch] = matching
  if (branch === undefined || matching.length > 1) return issue
  return findBranchIssue({ ...branch, path: [...issue.path, ...branch.path] })
}

/** Formats a path in JavaScript notation: `env.PATH`, `hosts[0]`, `env["a-b"]`. */
export const formatField = (path: readonly PropertyKey[], root: string): string =>
  path.length === 0 ? root : toDotPath(path.map(truncateKey))

function truncateKey<T extends PropertyKey>(key: T): T | string {
  return typeof key === 'string' && key.length > MAX_KEY_CHARS ? `${key.slice(0, MAX_KEY_CHARS)}…` : key
}

const NOT_VALID = 'is not valid'

/** The rest of the sentence after the field. */
function describeRule(issue: Issue): string {
  if (isMissing(issue)) return 'is required'
  if (issue.message.startsWith('must ')) return issue.message
  switch (issue.code) {
    case 'invalid_type':
      return mustBe(TYPES[issue.expected])
    case 'invalid_value':
      return mustBe(formatChoices(issue.values))
    case 'too_small':
    case 'too_big':
      return describeBound(issue)
    case 'invalid_format':
      return describeFormat(issue)
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_union':
      return describeUnion(issue)
    default:
      return NOT_VALID
  }
}

const isMissing = (issue: Issue): boolean =>
  ['invalid_type', 'invalid_value', 'invalid_union'].includes(issue.code) &&
  'input' in issue &&
  issue.input === undefined

const mustBe = (description: string | undefined): string =>
  description === undefined ? NOT_VALID : `must be ${description}`

const TYPES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'a JSON object',
  record: 'a JSON object',
  null: 'null',
}

function formatChoices(values: readonly unknown[]): string | undefined {
  const texts = values.filter((value) => value !== undefined).map(String)
  if (texts.length === 0) return undefined
  return texts.length === 1 ? texts[0] : `one of ${texts.join(', ')}`
}

const UNITS: Record<string, string> = {
  string: 'character',
  array: 'item',
  set: 'item',
  map: 'item',
  file: 'byte',
}

function describeBound(issue: IssueOf<'too_small' | 'too_big'>): string {
  const isMinimum = issue.code === 'too_small'
  const limit = Number(isMinimum ? issue.minimum : issue.maximum)
  const atLeast = isMinimum ? 'at least' : 'at most'
  const unit = UNITS[issue.origin]
  if (unit === undefined) {
    if (issue.inclusive) return `must be ${atLeast} ${limit}`
    return `must be ${isMinimum ? 'greater' : 'less'} than ${limit}`
  }
  if (isMinimum && limit === 1 && !issue.exact) return 'must not be empty'
  return `must have ${issue.exact ? 'exactly' : atLeast} ${limit} ${unit}${limit === 1 ? '' : 's'}`
}

const FORMATS: Record<string, string> = {
  uuid: 'a UUID',
  url: 'a URL',
  email: 'an email address',
  datetime: 'an RFC 3339 timestamp in UTC, such as 2030-01-31T12:00:00Z',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
  base64: 'base64',
  base64url: 'base64url',
}

function describeFormat(issue: IssueOf<'invalid_format'>): string {
  if ('prefix' in issue) return `must start with ${issue.prefix}`
  if ('suffix' in issue) return `must end with ${issue.suffix}`
  if ('includes' in issue) return `must contain ${issue.includes}`
  const format = FORMATS[issue.format]
  return format === undefined ? 'does not have the required form' : `must be ${format}`
}

/** Joins the branches' rules when each is about the value itself: "must be a string or a number". */
function describeUnion(issue: IssueOf<'invalid_union'>): string {
  if ('options' in issue && issue.options !== undefined) return mustBe(formatChoices(issue.options))
  const rules = issue.errors.map(([first]) => (first?.path.length === 0 ? describeRule(first) : NOT_VALID))
  if (rules.length === 0 || rules.some((text) => !text.startsWith('must be '))) return NOT_VALID
  return `must be ${rules.map((text) => text.slice('must be '.length)).join(' or ')}`
}

function describeKeyRule({ issues: [first] }: IssueOf<'invalid_key'>): string {
  return first === undefined ? NOT_VALID : describeRule(first)
}
