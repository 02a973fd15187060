// The grammar for a file, by its name.

/** The grammars that the dashboard has, by the endings of names. */
const ENDINGS = {
  bash: ['sh', 'bash', 'zsh', 'profile', 'bashrc', 'zshrc'],
  c: ['c', 'h'],
  cpp: ['cc', 'cpp', 'cxx', 'hpp', 'hh'],
  csharp: ['cs'],
  css: ['css', 'scss', 'less'],
  diff: ['diff', 'patch'],
  dockerfile: ['dockerfile'],
  go: ['go'],
  ini: ['ini', 'toml', 'cfg', 'conf', 'env', 'gitconfig'],
  java: ['java', 'kt'],
  javascript: ['js', 'mjs', 'cjs', 'jsx'],
  json: ['json', 'jsonc', 'json5', 'webmanifest'],
  makefile: ['mk', 'makefile'],
  markdown: ['md', 'markdown'],
  php: ['php'],
  python: ['py', 'pyi'],
  ruby: ['rb', 'gemfile', 'rakefile'],
  rust: ['rs'],
  sql: ['sql'],
  swift: ['swift'],
  typescript: ['ts', 'mts', 'cts', 'tsx'],
  xml: ['xml', 'html', 'htm', 'svg', 'vue', 'svelte'],
  yaml: ['yaml', 'yml'],
} as const

export type Language = keyof typeof ENDINGS

const LANGUAGES = new Map<string, Language>(
  Object.entries(ENDINGS).flatMap(([language, endings]) =>
    endings.map((ending) => [ending, language as Language] as const),
  ),
)

/** Null: there is none, and the text has no colours. */
export const findLanguage = (name: string): Language | null =>
  LANGUAGES.get(name.toLowerCase().split('.').at(-1) ?? '') ?? null
