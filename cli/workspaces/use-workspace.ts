// Switches the sign-in of a profile to another workspace. The machine key belongs to a workspace: a new one replaces it.
import type { CurrentSession } from '../../shared/api/sessions.ts'
import { AMBIGUOUS_ID } from '../arguments/unique-prefix.ts'
import { getProfilePath, type Profile, putProfile, updateProfiles } from '../connection/profile-file.ts'
import type { Session } from '../connection/session.ts'
import { createProfile, requestBySession } from '../login/machine-key.ts'
import { switchWorkspace } from '../login/sign-in.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'
import type { Output } from './change-workspace.ts'

/** @param typed the name or id of a workspace @throws CliError */
export async function useWorkspace(
  { client, coordinator, signal }: Session,
  typed: string,
  { json, quiet }: Output,
): Promise<undefined> {
  const current = await client.requestBySession<CurrentSession>('GET', '/session')
  const { profile } = coordinator
  const workspace = findWorkspace(current.workspaces, typed)
  if (profile?.session === undefined) return
  if (workspace.id !== current.workspace.id) await change(profile, profile.session, workspace.id, signal)
  if (json) printJson(workspace)
  else if (!quiet) printStderr(`The profile ${profile.name} uses the workspace ${sanitize(workspace.name)}.`)
}

/** The session of the earlier workspace revokes the key of that workspace, and then ends. */
async function change(
  profile: Profile,
  cookie: string,
  workspaceId: string,
  signal: AbortSignal,
): Promise<void> {
  const { key: _, keyId, keyExpiresAt: __, ...withoutKey } = profile
  if (keyId !== undefined) {
    await requestBySession(profile, signal, 'DELETE', `/keys/${encodeURIComponent(keyId)}`)
    store(withoutKey)
  }
  const session = await switchWorkspace(profile.url, cookie, workspaceId, signal)
  store({ ...withoutKey, session: session.cookie, sessionExpiresAt: session.session.expiresAt })
  store(await createProfile({ name: profile.name, url: profile.url }, session, { needsKey: true }, signal))
}

const store = (profile: Profile): void =>
  updateProfiles(getProfilePath(process.env), (file) => putProfile(file, profile))

type Workspace = CurrentSession['workspaces'][number]

/** @throws CliError */
function findWorkspace(workspaces: readonly Workspace[], typed: string): Workspace {
  const found = workspaces.filter(({ id, name }) => id === typed || name === typed)
  const [first] = found
  if (first !== undefined && found.length === 1) return first
  if (found.length > 1)
    throw new CliError(
      EXIT.usage,
      `${found.length} workspaces have the name '${sanitize(typed)}'. Use an id: ${found.map(({ id }) => id).join(', ')}.`,
      { code: AMBIGUOUS_ID },
    )
  throw new CliError(
    EXIT.notFound,
    `No such workspace: '${sanitize(typed)}'. \`box workspace ls\` lists your workspaces.`,
    { code: 'no_such_workspace' },
  )
}
