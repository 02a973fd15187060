// The tokens of a source text, for its colours. A chunk of its own: the grammars are larger than all other scripts of a page.
import bash from 'highlight.js/lib/languages/bash'
import c from 'highlight.js/lib/languages/c'
import cpp from 'highlight.js/lib/languages/cpp'
import csharp from 'highlight.js/lib/languages/csharp'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import dockerfile from 'highlight.js/lib/languages/dockerfile'
import go from 'highlight.js/lib/languages/go'
import ini from 'highlight.js/lib/languages/ini'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import makefile from 'highlight.js/lib/languages/makefile'
import markdown from 'highlight.js/lib/languages/markdown'
import php from 'highlight.js/lib/languages/php'
import python from 'highlight.js/lib/languages/python'
import ruby from 'highlight.js/lib/languages/ruby'
import rust from 'highlight.js/lib/languages/rust'
import sql from 'highlight.js/lib/languages/sql'
import swift from 'highlight.js/lib/languages/swift'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { createLowlight } from 'lowlight'
import type { Language } from '../../data/languages.ts'

/** The kinds that have a colour. */
const KINDS = {
  comment: 'comment',
  quote: 'comment',
  string: 'string',
  regexp: 'string',
  addition: 'string',
  number: 'number',
  literal: 'number',
  keyword: 'keyword',
  type: 'type',
  built_in: 'type',
  'title.class': 'type',
  title: 'name',
  attr: 'name',
  attribute: 'name',
  section: 'keyword',
  name: 'keyword',
  deletion: 'deletion',
  meta: 'comment',
  variable: 'number',
} as const

export type Token = { text: string; kind: (typeof KINDS)[keyof typeof KINDS] | null }

type Node = { type: string; value?: string; properties?: { className?: unknown }; children?: Node[] }

const lowlight = createLowlight({
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  go,
  ini,
  java,
  javascript,
  json,
  makefile,
  markdown,
  php,
  python,
  ruby,
  rust,
  sql,
  swift,
  typescript,
  xml,
  yaml,
} satisfies Record<Language, unknown>)

export function highlight(language: Language, text: string): Token[] {
  const tokens: Token[] = []
  const add = (node: Node, kind: Token['kind']) => {
    if (node.type === 'text') tokens.push({ text: node.value ?? '', kind })
    const names = node.properties?.className
    const own = Array.isArray(names) ? findKind(names.map(String)) : null
    for (const child of node.children ?? []) add(child, own ?? kind)
  }
  add(lowlight.highlight(language, text) as Node, null)
  return tokens
}

/** @param names such as `hljs-title`, `class_` */
function findKind(names: readonly string[]): Token['kind'] {
  const name = names[0]?.replace('hljs-', '') ?? ''
  const isKnown = (key: string): key is keyof typeof KINDS => Object.hasOwn(KINDS, key)
  const withScope = names[1] === 'class_' ? `${name}.class` : name
  if (isKnown(withScope)) return KINDS[withScope]
  return isKnown(name) ? KINDS[name] : null
}
