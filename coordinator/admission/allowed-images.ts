// The policy allowedImages: the images that boxes may have.
import type { Policy } from '../../shared/api/policies.ts'
import type { Refusal } from './refusal.ts'

/** @param names the names of an image, any of which the policy may allow; empty: there is no image */
export function refuseImage(
  [image, ...others]: readonly string[],
  { allowedImages }: Pick<Policy, 'allowedImages'>,
): Refusal | null {
  if (image === undefined || allowedImages === null) return null
  const names = [image, ...others]
  if (names.some((name) => allowedImages.some((pattern) => matchesPattern(name, pattern)))) return null
  const allowed = allowedImages.length === 0 ? 'It allows none' : `It allows ${allowedImages.join(', ')}`
  const message = `The policy allowedImages of the workspace does not allow the image ${image}. ${allowed}.`
  return { code: 'policy_denied', rule: 'allowedImages', message }
}

/** Whether the text matches the pattern, in which `*` stands for any text. Takes linear time for each `*`. */
function matchesPattern(text: string, pattern: string): boolean {
  const [start = '', ...parts] = pattern.split('*')
  const end = parts.pop()
  if (end === undefined) return text === pattern
  if (!text.startsWith(start) || !text.endsWith(end) || text.length < start.length + end.length) return false
  let position = start.length
  for (const part of parts) {
    const found = text.indexOf(part, position)
    if (found === -1) return false
    position = found + part.length
  }
  return position <= text.length - end.length
}
