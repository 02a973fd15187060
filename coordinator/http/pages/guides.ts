// The guides: the Markdown pages of the directory docs/, which browsers get as text.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { PROJECT_DIR } from '../../base/project-directory.ts'
import { createContentHandler } from '../fixed-content.ts'
import type { PublicRoute } from '../public-routes.ts'

const DIRECTORY = join(PROJECT_DIR, 'docs')

export type Guide = {
  /** The name of the file without its extension: lower-case letters. */
  topic: string
  /** Escaped for HTML. */
  title: string
}

const readGuide = (topic: string): string => readFileSync(join(DIRECTORY, `${topic}.md`), 'utf8')

/** Empty in a copy of the project without the directory. */
export const listGuides = (): Guide[] =>
  (existsSync(DIRECTORY) ? readdirSync(DIRECTORY) : [])
    .filter((file) => /^[a-z-]+\.md$/.test(file))
    .map((file) => basename(file, '.md'))
    .sort()
    .map((topic) => ({ topic, title: escapeHtml(/^# (.*)$/m.exec(readGuide(topic))?.[1] ?? topic) }))

const escapeHtml = (text: string): string =>
  text.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`)

export function guideRoute({ topic }: Guide): PublicRoute {
  const send = createContentHandler('text/plain; charset=utf-8', async () => readGuide(topic))
  return {
    path: `/docs/guides/${topic}.md`,
    isCompressed: true,
    handler: (request, reply) =>
      send(
        request,
        reply.headers({
          'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
          'cross-origin-resource-policy': 'same-origin',
          'x-content-type-options': 'nosniff',
        }),
      ),
  }
}
