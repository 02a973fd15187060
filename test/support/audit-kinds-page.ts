// Writes the tables of kinds in docs/audit.md. `npm run docs:audit` writes the page.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CLIENT_AUDIT_KINDS, type ClientAuditKind, SERVER_AUDIT_KINDS } from '../../shared/audit-kinds.ts'
import { PROJECT_DIR } from './project.ts'

export const AUDIT_PAGE = join(PROJECT_DIR, 'docs/audit.md')

const CLIENT_KINDS: Record<ClientAuditKind, string> = {
  exec: 'a command was run, such as over SSH',
  'file.upload': 'a file was copied to the box',
  'file.download': 'a file was copied from the box',
  prompt: 'a coding agent got a prompt',
  'desktop.start': 'the desktop was started',
}

const drawTable = (kinds: readonly (readonly [string, string])[]): string =>
  [
    '| kind | recorded when |',
    '|---|---|',
    ...kinds.map(([kind, description]) => `| \`${kind}\` | ${description} |`),
  ].join('\n')

const SECTIONS = {
  'server kinds': () => drawTable(Object.entries(SERVER_AUDIT_KINDS)),
  'client kinds': () => drawTable(CLIENT_AUDIT_KINDS.map((kind) => [kind, CLIENT_KINDS[kind]])),
} as const

/** The page with its generated sections replaced. Throws when a section has no markers. */
export function renderAuditPage(page: string): string {
  let rendered = page
  for (const [name, draw] of Object.entries(SECTIONS)) {
    const section = new RegExp(`(<!-- begin ${name} -->\n)[\\s\\S]*?(<!-- end ${name} -->)`)
    if (!section.test(rendered)) throw new Error(`docs/audit.md has no markers of the section ${name}.`)
    rendered = rendered.replace(section, (_match, begin: string, end: string) => `${begin}${draw()}\n${end}`)
  }
  return rendered
}

if (import.meta.main) writeFileSync(AUDIT_PAGE, renderAuditPage(readFileSync(AUDIT_PAGE, 'utf8')))
