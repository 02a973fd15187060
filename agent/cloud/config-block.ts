// The block of profiles in the text of ~/.aws/config. What the user has in the file outside of the block stays as it is, and so
// do settings that the user has added to a profile of the block, as `aws configure set region` does.
// Texts are bytes that were decoded as Latin-1, because the file may have any encoding.
import type { CloudProfile } from '../../shared/api/cloud-credentials.ts'

const BEGIN = '# boxwood: begin (managed; changes in this block are overwritten)'
/** For a file without a newline at its end: the removal of the block also removes the newline before this line. */
const BEGIN_WITH_NEWLINE =
  '# boxwood: begin (managed; changes in this block are overwritten; the newline before it belongs to it)'
const END = '# boxwood: end'

export type UserDefined = { name: string; file: '~/.aws/config' | '~/.aws/credentials' }

export type BlockUpdate = {
  text: string
  /** The profiles that are not in the block, because the user has defined them. */
  userDefined: UserDefined[]
}

/**
 * Replaces the block where it is, or appends it. Without profiles, removes it.
 * @param tokenPath absolute
 * @param credentials the text of ~/.aws/credentials: the AWS CLI would prefer a profile of the block to the keys there, and
 *   most SDKs would not
 */
export function updateBlock(
  text: string,
  profiles: readonly CloudProfile[],
  tokenPath: string,
  credentials = '',
): BlockUpdate {
  const { userText, position, settings } = removeBlocks(text)
  const inConfig = listProfileNames(userText)
  const inCredentials = new Set(listSections(credentials).map((words) => words.join(' ')))
  const userDefined: UserDefined[] = []
  const lines: string[] = []
  for (const profile of profiles) {
    const { name } = profile
    if (inConfig.has(name)) userDefined.push({ name, file: '~/.aws/config' })
    else if (inCredentials.has(name)) userDefined.push({ name, file: '~/.aws/credentials' })
    else lines.push(...renderProfile(profile, tokenPath), ...(settings.get(name) ?? []))
  }
  if (lines.length === 0) return { text: userText, userDefined }
  const before = userText.slice(0, position)
  const needsNewline = before !== '' && !before.endsWith('\n')
  const begin = needsNewline ? `\n${BEGIN_WITH_NEWLINE}` : BEGIN
  const block = [begin, ...lines, END, ''].join('\n')
  return { text: before + block + userText.slice(position), userDefined }
}

const OWN_SETTING = /^(role_arn|web_identity_token_file|role_session_name)\s*[=:]/

const renderProfile = ({ name, roleArn, roleSessionName }: CloudProfile, tokenPath: string): string[] => [
  name === 'default' ? '[default]' : `[profile ${name}]`,
  `role_arn = ${roleArn}`,
  `web_identity_token_file = ${tokenPath}`,
  `role_session_name = ${roleSessionName}`,
]

/**
 * Removes all complete blocks: the user may have copied one. A block without its last line is text of the user, because
 * its end is unknown.
 * @returns position: where the first block was; without a block, the end of the text
 */
function removeBlocks(text: string): { userText: string; position: number; settings: Map<string, string[]> } {
  const lines = text.split(/(?<=\n)/)
  const kept: string[] = []
  const settings = new Map<string, string[]>()
  let beginIndex: number | null = null
  let position: number | null = null
  let ownsNewline = false
  for (const line of lines) {
    const content = line.trimEnd()
    if (content === BEGIN || content === BEGIN_WITH_NEWLINE) beginIndex = kept.length
    kept.push(line)
    if (content !== END || beginIndex === null) continue
    const [first = '', ...block] = kept.splice(beginIndex)
    ownsNewline = first.trimEnd() === BEGIN_WITH_NEWLINE
    beginIndex = null
    position ??= kept.join('').length
    // Of a copied profile, only the first counts: a setting must not be there twice.
    for (const [name, added] of readAddedSettings(block)) if (!settings.has(name)) settings.set(name, added)
  }
  const userText = kept.join('')
  // Without the newline, text that the user has added after the block would continue the line before it.
  const isLast = position === userText.length
  const restored = ownsNewline && isLast ? userText.replace(/\r?\n$/, '') : userText
  return { userText: restored, position: Math.min(position ?? restored.length, restored.length), settings }
}

/** The lines of the user in the profiles of a block, by the name of the profile. */
function readAddedSettings(block: readonly string[]): Map<string, string[]> {
  const settings = new Map<string, string[]>()
  let added: string[] = []
  // Without the line that ends the block.
  for (const line of block.slice(0, -1)) {
    const text = line.replace(/\r?\n$/, '')
    const [name] = listProfileNames(text)
    if (name !== undefined) {
      added = []
      if (!settings.has(name)) settings.set(name, added)
    } else if (!OWN_SETTING.test(text) && text.trim() !== '') added.push(text)
  }
  return settings
}

/** The notations that the AWS CLI and the SDKs accept: [default], [profile default], [profile "name"]. */
function listProfileNames(text: string): Set<string> {
  const names = new Set<string>()
  for (const [kind, ...rest] of listSections(text)) {
    if (kind === 'default' && rest.length === 0) names.add('default')
    if (kind === 'profile') names.add(rest.join(' ').replace(/^(['"])(.*)\1$/, '$2'))
  }
  return names
}

/** The words of the headers of sections. */
function listSections(text: string): string[][] {
  const sections: string[][] = []
  for (const line of text.split(/\r\n|\r|\n/)) {
    // The byte order mark of UTF-8.
    const header = line.replace(/^\xef\xbb\xbf/, '').trim()
    const end = header.indexOf(']')
    if (header.startsWith('[') && end !== -1) sections.push(header.slice(1, end).trim().split(/\s+/))
  }
  return sections
}
