// The block of profiles in the text of ~/.aws/config. What the user has in the file outside of the block stays as it is.
// Texts are bytes that were decoded as Latin-1, because the file may have any encoding.
import type { CloudProfile } from '../../shared/api/cloud-credentials.ts'

const BEGIN = '# boxwood: begin (managed; changes in this block are overwritten)'
/** For a file without a newline at its end: the removal of the block also removes the newline before this line. */
const BEGIN_WITH_NEWLINE =
  '# boxwood: begin (managed; changes in this block are overwritten; the newline before it belongs to it)'
const END = '# boxwood: end'

export type BlockUpdate = {
  text: string
  /** The names of the profiles that are not in the block, because the user has defined them. */
  userDefined: string[]
}

/**
 * Replaces the block where it is, or appends it. Without profiles, removes it.
 * @param tokenPath absolute
 */
export function updateBlock(text: string, profiles: readonly CloudProfile[], tokenPath: string): BlockUpdate {
  const { userText, position } = removeBlocks(text)
  const userNames = listProfileNames(userText)
  const userDefined = profiles.map(({ name }) => name).filter((name) => userNames.has(name))
  const added = profiles.filter(({ name }) => !userNames.has(name))
  if (added.length === 0) return { text: userText, userDefined }
  const before = userText.slice(0, position)
  const needsNewline = before !== '' && !before.endsWith('\n')
  const lines = [
    needsNewline ? `\n${BEGIN_WITH_NEWLINE}` : BEGIN,
    ...added.flatMap((profile) => renderProfile(profile, tokenPath)),
    END,
    '',
  ]
  return { text: before + lines.join('\n') + userText.slice(position), userDefined }
}

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
function removeBlocks(text: string): { userText: string; position: number } {
  const lines = text.split(/(?<=\n)/)
  const kept: string[] = []
  let beginIndex: number | null = null
  let position: number | null = null
  let ownsNewline = false
  for (const line of lines) {
    const content = line.trimEnd()
    if (content === BEGIN || content === BEGIN_WITH_NEWLINE) beginIndex = kept.length
    kept.push(line)
    if (content !== END || beginIndex === null) continue
    ownsNewline = kept[beginIndex]?.trimEnd() === BEGIN_WITH_NEWLINE
    kept.length = beginIndex
    beginIndex = null
    position ??= kept.join('').length
  }
  const userText = kept.join('')
  // Without the newline, text that the user has added after the block would continue the line before it.
  const isLast = position === userText.length
  const restored = ownsNewline && isLast ? userText.replace(/\r?\n$/, '') : userText
  return { userText: restored, position: Math.min(position ?? restored.length, restored.length) }
}

/** The notations that the AWS CLI and the SDKs accept: [default], [profile default], [profile "name"]. */
function listProfileNames(text: string): Set<string> {
  const names = new Set<string>()
  for (const line of text.split(/\r\n|\r|\n/)) {
    // The byte order mark of UTF-8.
    const header = line.replace(/^\xef\xbb\xbf/, '').trim()
    const end = header.indexOf(']')
    if (!header.startsWith('[') || end === -1) continue
    const [kind, ...rest] = header.slice(1, end).trim().split(/\s+/)
    if (kind === 'default' && rest.length === 0) names.add('default')
    if (kind === 'profile') names.add(rest.join(' ').replace(/^(['"])(.*)\1$/, '$2'))
  }
  return names
}
