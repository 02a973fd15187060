// What the messages of an engine about a failed download mean. Engines have no codes for them.
import { ImageError } from '../../provider.ts'

const MEANINGS: readonly [RegExp, ImageError['code'], string][] = [
  [
    /no matching manifest|no image found in .*(?:manifest list|image index)|does not match the (?:specified|expected) platform/i,
    'image_unusable',
    'has no content for the processor of this machine',
  ],
  [
    /manifest unknown|name unknown|manifest for .* not found|repository name not known|no such image|not found: does not exist|status 404|404 \(?not found/i,
    'image_not_found',
    'does not exist',
  ],
  [
    /pull access denied|requested access to the resource is denied|unauthorized|authentication required|no basic auth credentials|access denied|forbidden/i,
    'image_pull_failed',
    'does not exist, or its registry needs credentials. Log in with `docker login` as the user of the coordinator',
  ],
]

/** Returns an ImageError where a retry does not help, else an Error. */
export function describePullFailure(reference: string, reason: string, cause?: unknown): Error {
  const text = reason.trim().replace(/\s+/g, ' ').slice(0, 500)
  for (const [pattern, code, problem] of MEANINGS)
    if (pattern.test(text))
      return new ImageError(code, `The image ${reference} ${problem}. The engine reports: ${text}`, { cause })
  return new Error(`The image ${reference} could not be downloaded: ${text}`, { cause })
}
