// What users change about themselves: the name, and the email address of an owner.
import type { CurrentSession, IssuedCode, SignedInUser } from '../../shared/api/sessions.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { Session } from '../connection/session.ts'
import { print, printJson, printStderr, sanitize } from '../output/print.ts'
import { formatTable } from '../output/table.ts'
import { createLineReader } from './read-line.ts'
import { askForCode } from './sign-in.ts'

export type ProfileOptions = JsonOption & QuietOption & { name?: string; email?: string }
type UserResponse = { user: SignedInUser }

/** @throws CliError without a sign-in */
export async function showProfile(
  { client }: Pick<Session, 'client'>,
  { json }: JsonOption,
): Promise<undefined> {
  const { user, workspace } = await client.requestBySession<CurrentSession>('GET', '/session')
  if (json) printJson({ user, workspace })
  else
    print(
      formatTable([
        ['name', user.name],
        ['email', user.email ?? `none: \`${boxCommand()} profile --email ADDRESS\` sets one`],
        ['role', user.role],
        ['workspace', workspace.name],
      ]),
    )
}

/** The new address gets a code, which the user types. @throws CliError */
export async function changeProfile(
  session: Pick<Session, 'client' | 'signal'>,
  { name, email, json, quiet }: ProfileOptions,
): Promise<undefined> {
  let user: SignedInUser | undefined
  if (name !== undefined)
    ({ user } = await session.client.requestBySession<UserResponse>('PATCH', '/session/user', { name }))
  if (email !== undefined) user = await changeEmail(session, email)
  if (json) printJson({ user })
  else if (!quiet && user !== undefined)
    printStderr(
      sanitize(user.email === null ? `Your name is ${user.name}.` : `You are ${user.name}, ${user.email}.`),
    )
}

async function changeEmail(
  { client, signal }: Pick<Session, 'client' | 'signal'>,
  email: string,
): Promise<SignedInUser> {
  const { id } = await client.requestBySession<IssuedCode>('POST', '/session/email', { email })
  printStderr(
    `A code has been sent to ${sanitize(email)}. A coordinator without a mail server prints it on its terminal, after \`box up\` in coordinator.log in its data directory.`,
  )
  const lines = createLineReader(signal)
  try {
    const { user } = await askForCode(lines, (code) =>
      client.requestBySession<UserResponse>('POST', '/session/email/confirm', { id, code }),
    )
    return user
  } finally {
    lines.close()
  }
}
