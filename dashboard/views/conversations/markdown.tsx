// The Markdown of an answer. All of it is text nodes and links; a link shows where it leads.
import { useMemo } from 'preact/hooks'
import { type Inline, type MarkdownBlock, parseMarkdown } from '../../data/markdown.ts'
import { showHiddenInOutput } from '../../data/visible-text.ts'

/** Longer texts are shown without their structure. */
const MAX_CHARS = 200_000

export function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => (text.length > MAX_CHARS ? null : parseMarkdown(text)), [text])
  if (blocks === null) return <pre>{showHiddenInOutput(text)}</pre>
  return (
    <div class="markdown">
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} />
      ))}
    </div>
  )
}

function BlockView({ block }: { block: MarkdownBlock }) {
  switch (block.kind) {
    case 'code':
      return <pre>{showHiddenInOutput(block.text)}</pre>
    case 'rule':
      return <hr />
    case 'quote':
      return (
        <blockquote>
          <Inlines nodes={block.children} />
        </blockquote>
      )
    case 'list': {
      const items = block.items.map(({ depth, children }, index) => (
        <li key={index} class={`depth-${depth}`}>
          <Inlines nodes={children} />
        </li>
      ))
      return block.isOrdered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>
    }
    default:
      return (
        // Not a heading of the page.
        <p class={block.kind}>
          <Inlines nodes={block.children} />
        </p>
      )
  }
}

function Inlines({ nodes }: { nodes: readonly Inline[] }) {
  return (
    <>
      {nodes.map((node, index) => (
        <InlineView key={index} node={node} />
      ))}
    </>
  )
}

function InlineView({ node }: { node: Inline }) {
  switch (node.kind) {
    case 'text':
      return <>{showHiddenInOutput(node.text)}</>
    case 'code':
      return <code>{showHiddenInOutput(node.text)}</code>
    case 'strong':
      return (
        <strong>
          <Inlines nodes={node.children} />
        </strong>
      )
    case 'emphasis':
      return (
        <em>
          <Inlines nodes={node.children} />
        </em>
      )
    case 'link': {
      const [only] = node.children
      const isUrl = node.children.length === 1 && only?.kind === 'text' && only.text === node.url
      return (
        <>
          {!isUrl && (
            <>
              <Inlines nodes={node.children} /> (
            </>
          )}
          <a href={node.url} target="_blank" rel="noopener noreferrer">
            {node.url}
          </a>
          {!isUrl && ')'}
        </>
      )
    }
  }
}
