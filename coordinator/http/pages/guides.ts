// The guides: the Markdown pages of the directory docs/. Browsers get them as pages, programs as text.

import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import type { FastifyReply } from 'fastify'
import { MARK_ICON } from '../../../shared/mark.ts'
import { PROJECT_DIR } from '../../base/project-directory.ts'
import { createContentHandler } from '../fixed-content.ts'
import type { PublicRoute } from '../public-routes.ts'
import { GUIDE_GROUPS, type GuideGroup } from './guide-groups.ts'
import type { RenderedGuide } from './render-guide.ts'

const DIRECTORY = join(PROJECT_DIR, 'docs')
const TOPIC = /^[a-z-]+$/

/** The topics are the names of the files without their extension. */
const listTopics = (): string[] =>
  (existsSync(DIRECTORY) ? readdirSync(DIRECTORY) : [])
    .filter((file) => extname(file) === '.md')
    .map((file) => basename(file, '.md'))
    .filter((topic) => TOPIC.test(topic))

/** Without the groups of a copy of the project that has no guides. */
export function listGuideGroups(): GuideGroup[] {
  const topics = listTopics()
  const groups = GUIDE_GROUPS.map(({ title, guides }) => ({
    title,
    guides: guides.filter(({ topic }) => topics.includes(topic)),
  }))
  return groups.filter(({ guides }) => guides.length > 0)
}

const readGuide = (topic: string): Promise<string> => readFile(join(DIRECTORY, `${topic}.md`), 'utf8')

/** Loads the renderer with the first page. */
async function renderPage(topic: string, groups: readonly GuideGroup[]): Promise<string> {
  const { renderGuide } = await import('./render-guide.ts')
  const guide = renderGuide(
    await readGuide(topic),
    groups.flatMap(({ guides }) => guides.map((known) => known.topic)),
  )
  return createGuidePage(topic, guide, groups)
}

/** URLs are relative to docs/guides/, for proxies that add a path. Everything in `guide` is escaped. */
const createGuidePage = (
  topic: string,
  { title, html, headings }: RenderedGuide,
  groups: readonly GuideGroup[],
) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Boxwood</title>
<link rel="icon" href="${MARK_ICON}">
<link rel="stylesheet" href="../page.css">
<link rel="stylesheet" href="../guides.css">
</head>
<body class="guide">
<header><a href="../../">Boxwood</a> <a href="../../docs">API reference</a> <a href="${topic}.md">Markdown</a></header>
<nav aria-label="Guides">
${formatGroups(groups, (other) => `<a href="${other}"${other === topic ? ' aria-current="page"' : ''}>`)}
</nav>
<main>
${html}
</main>
${headings.length > 1 ? `<nav aria-label="On this page"><ul>\n${headings.map(({ id, text }) => `<li><a href="#${id}">${text}</a></li>`).join('\n')}\n</ul></nav>` : ''}
</body>
</html>
`

/** @param openLink returns the tag that begins the link to a topic */
export const formatGroups = (groups: readonly GuideGroup[], openLink: (topic: string) => string): string =>
  groups
    .map(
      ({ title, guides }) =>
        `<h2>${title}</h2>\n<ul>\n${guides.map((guide) => `<li>${openLink(guide.topic)}${guide.title}</a></li>`).join('\n')}\n</ul>`,
    )
    .join('\n')

const TEXT_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
}

/** @param protect sets the headers of the pages of the coordinator */
export function guideRoutes(
  groups: readonly GuideGroup[],
  protect: (reply: FastifyReply) => FastifyReply,
): PublicRoute[] {
  const routes = groups.flatMap(({ guides }) =>
    guides.flatMap(({ topic }): PublicRoute[] => {
      const sendText = createContentHandler('text/plain; charset=utf-8', () => readGuide(topic))
      const sendHtml = createContentHandler('text/html; charset=utf-8', () => renderPage(topic, groups))
      return [
        {
          path: `/docs/guides/${topic}`,
          isCompressed: true,
          handler: (request, reply) => sendHtml(request, protect(reply)),
        },
        {
          path: `/docs/guides/${topic}.md`,
          isCompressed: true,
          handler: (request, reply) => sendText(request, reply.headers(TEXT_HEADERS)),
        },
      ]
    }),
  )
  const [first] = groups.flatMap(({ guides }) => guides)
  return first === undefined
    ? []
    : [...routes, ...firstGuideRoutes(first.topic), ...listImages().map(imageRoute)]
}

/** For an address that was cut off by hand. */
const firstGuideRoutes = (topic: string): PublicRoute[] =>
  [
    ['/docs/guides', `guides/${topic}`],
    ['/docs/guides/', topic],
  ].map(([path = '', target = '']) => ({
    path,
    handler: async (_request, reply) => reply.redirect(target, 302),
  }))

const listImages = (): string[] => {
  const directory = join(DIRECTORY, 'images')
  return (existsSync(directory) ? readdirSync(directory) : []).filter((file) => extname(file) === '.png')
}

function imageRoute(file: string): PublicRoute {
  const send = createContentHandler('image/png', () => readFile(join(DIRECTORY, 'images', file)))
  return {
    path: `/docs/guides/images/${file}`,
    isCompressed: true,
    handler: (request, reply) => send(request, reply.headers(TEXT_HEADERS)),
  }
}
