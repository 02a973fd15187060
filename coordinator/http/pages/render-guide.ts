// Renders a guide from Markdown to HTML. Raw HTML of the source is escaped, and links have no other scheme than http and https.
import Slugger from 'github-slugger'
import MarkdownIt from 'markdown-it'

export type RenderedGuide = {
  /** Escaped. */
  title: string
  html: string
  /** Of the second level. The text is escaped. */
  headings: { id: string; text: string }[]
}

/** @param topics the guides that are pages */
export function renderGuide(source: string, topics: readonly string[]): RenderedGuide {
  const markdown = new MarkdownIt({ html: false })
  const { escapeHtml } = markdown.utils
  const slugger = new Slugger()
  const headings: RenderedGuide['headings'] = []
  const tokens = markdown.parse(replaceHtml(source), {})
  let title = ''
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const text = getText(tokens[index + 1]?.children ?? [])
      const id = slugger.slug(text)
      token.attrSet('id', id)
      if (token.tag === 'h1') title ||= escapeHtml(text)
      if (token.tag === 'h2') headings.push({ id, text: escapeHtml(text) })
    }
    for (const child of token.children ?? [])
      if (child.type === 'link_open')
        child.attrSet('href', toPageUrl(String(child.attrGet('href') ?? ''), topics))
  }
  return { title, html: markdown.renderer.render(tokens, markdown.options, {}), headings }
}

type Token = { content: string; children?: Token[] | null }

const getText = (tokens: readonly Token[]): string => tokens.map(({ content }) => content).join('')

/** An image that has a version for dark pages is one image, and comments are for the editors of a page. */
const replaceHtml = (source: string): string =>
  source
    .replace(/<picture>[\s\S]*?<img alt="([^"]*)" src="([^"]*)">[\s\S]*?<\/picture>/g, '![$1]($2)')
    .replace(/^<!--.*-->\n/gm, '')

/** access.md#roles → access#roles. The sources of the project are not served: their links lead to the list of guides. */
function toPageUrl(href: string, topics: readonly string[]): string {
  if (/^(https?:|#)/.test(href)) return href
  const [, topic = '', anchor = ''] = /^([a-z-]+)\.md(#.*)?$/.exec(href) ?? []
  return topics.includes(topic) ? topic + anchor : '../../#guides'
}
