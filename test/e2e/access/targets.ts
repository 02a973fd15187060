// Creates the boxes, snapshots, records and other things that the requests of the access tests name.
import { newId } from '../../../shared/ids.ts'
import type { TestCoordinator } from '../../support/coordinator.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { createCredentials, User } from './credentials.ts'
import { newSecretName, type Target } from './requests.ts'

type Owner = { user: User; key: string; workspaceName: string }

/** Routes whose request, when it is allowed, changes or ends what it names: they need a new target each time. */
const DESTRUCTIVE = [
  ...[
    'DELETE /boxes/{id}',
    'POST /boxes/{id}/suspend',
    'POST /boxes/{id}/template',
    'POST /boxes/{id}/owner',
  ],
  ...['DELETE /snapshots/{id}', 'POST /snapshots/{id}/template', 'DELETE /snapshots/{id}/template'],
  ...['DELETE /boxes/{id}/commands', 'DELETE /boxes/{id}/commands/{commandId}'],
  ...['DELETE /sessions/{id}', 'DELETE /keys/{id}', 'DELETE /members/{id}', 'PATCH /members/{id}'],
  ...['DELETE /port-shares/{id}', 'DELETE /environments/{id}'],
  ...['DELETE /secrets/{id}', 'DELETE /secrets/{id}/grants/{grantId}'],
  'DELETE /boxes/{id}/secrets/{mountId}',
  ...['DELETE /aws-roles/{id}', 'DELETE /aws-connect/{id}'],
]

export function createTargets(
  coordinator: TestCoordinator,
  credentials: ReturnType<typeof createCredentials>,
) {
  const { api, instance, waitForState } = coordinator
  const { db, clock } = instance.context

  /** The box of a foreign workspace is not visible to the owner's key, so its state is read from the database. */
  async function addBox(key: string): Promise<string> {
    const { json } = await api('POST', '/boxes', {}, { key })
    const { id } = json.box
    await waitUntil('the box is running', async () => {
      const row = await db
        .selectFrom('boxes')
        .select('observed_state')
        .where('id', '=', id)
        .executeTakeFirst()
      return row?.observed_state === 'running'
    })
    return id
  }

  async function addSnapshot(key: string, boxId: string, isTemplate: boolean): Promise<string> {
    const { json } = await api('POST', '/snapshots', { boxId, name: 'first' }, { key })
    const { id } = json.snapshot
    await waitUntil('the snapshot is available', async () => {
      const row = await db.selectFrom('snapshots').select('status').where('id', '=', id).executeTakeFirst()
      return row?.status === 'available'
    })
    if (isTemplate) await api('POST', `/snapshots/${id}/template`, { name: `t-${boxId}` }, { key })
    return id
  }

  async function addCommand(boxId: string): Promise<string> {
    const id = newId('process')
    const now = clock.now()
    await db
      .insertInto('commands')
      .values({
        ...{
          id,
          box_id: boxId,
          mode: 'sync',
          source: 'api',
          command: 'true',
          command_truncated: 0,
          cwd: '~',
        },
        ...{ status: 'exited', exit_code: 0, signal: null, pid: 1, requested_at: now, started_at: now },
        ...{ finished_at: now, actor_kind: 'user', output_kept: 1, stdout_bytes: 0, stdout_start: 0 },
        ...{ stderr_bytes: 0, stderr_start: 0 },
      })
      .execute()
    return id
  }

  /** An operation of a box that the limited key `keyId` covers too. */
  async function addOperation(key: string): Promise<{ operation: string; deletedBox: string }> {
    const deletedBox = await addBox(key)
    const { json } = await api('DELETE', `/boxes/${deletedBox}`, undefined, { key })
    return { operation: json.operation.id, deletedBox }
  }

  async function addEnrollment(user: User): Promise<string> {
    const { cookie } = await credentials.addSession(user)
    const { json } = await api('POST', '/machines', {}, { key: null, headers: { cookie } })
    // A contractor cannot create one.
    return json.enrollment?.id ?? newId('enrollment')
  }

  async function addEnvironment(key: string): Promise<string> {
    const { json } = await api('POST', '/environments', { name: crypto.randomUUID() }, { key })
    // A contractor cannot create one.
    return json.environment?.id ?? newId('environment')
  }

  let port = 8000

  /** A port has one link. */
  async function addShare(key: string, boxId: string): Promise<string> {
    port += 1
    const { json } = await api('POST', `/boxes/${boxId}/port-shares`, { port }, { key })
    return json.share.id
  }

  /** A contractor has none. */
  async function addSecret(key: string, box: string): Promise<Pick<Target, 'secret' | 'grant' | 'mount'>> {
    const name = newSecretName()
    const body = { name, value: 'value', hosts: ['api.example.com'], grants: [{ boxId: box }] }
    const { secret } = (await api('POST', '/secrets', body, { key })).json
    if (!secret) return { secret: newId('secret'), grant: newId('secretGrant'), mount: newId('secretMount') }
    const mounting = { secretId: secret.id, envName: name }
    const { mount } = (await api('POST', `/boxes/${box}/secrets`, mounting, { key })).json
    return { secret: secret.id, grant: secret.grants[0].id, mount: mount.id }
  }

  /** A workspace has one link: a new one replaces it. */
  async function addAws({ id: userId, workspaceId }: User): Promise<Pick<Target, 'awsRole' | 'awsConnect'>> {
    const [awsRole, awsConnect, now] = [newId('awsRole'), newId('awsConnect'), clock.now()]
    const common = { workspace_id: workspaceId, created_at: now }
    await db
      .insertInto('aws_roles')
      .values({ ...common, id: awsRole, role_arn: awsRole, profile: awsRole, created_by: 'system' })
      .execute()
    await db.deleteFrom('aws_connects').where('workspace_id', '=', workspaceId).execute()
    const link = {
      id: awsConnect,
      token_hash: '',
      user_id: userId,
      credential_id: '',
      expires_at: now + 3_600_000,
    }
    await db
      .insertInto('aws_connects')
      .values({ ...common, ...link, credential_type: 'key' })
      .execute()
    return { awsRole, awsConnect }
  }

  async function add({ user, key, workspaceName }: Owner): Promise<Target & { deletedBox: string }> {
    const box = await addBox(key)
    const [snapshot, command, operation] = [
      await addSnapshot(key, box, true),
      await addCommand(box),
      await addOperation(key),
    ]
    return {
      ...{ box, snapshot, command, workspaceName, workspace: user.workspaceId },
      ...operation,
      environment: await addEnvironment(key),
      enrollment: await addEnrollment(user),
      share: await addShare(key, box),
      ...(await addSecret(key, box)),
      ...(await addAws(user)),
      session: (await credentials.addSession(user)).id,
      key: (await credentials.addKey(user)).id,
      member: (await credentials.addUser(user.workspaceId, 'member')).id,
    }
  }

  /** The target, with new things where the route changes them. */
  async function renew(route: string, owner: Owner, target: Target): Promise<Target> {
    if (!DESTRUCTIVE.includes(route)) return target
    const { user, key } = owner
    if (route.includes('/snapshots/'))
      return { ...target, snapshot: await addSnapshot(key, target.box, route.startsWith('DELETE')) }
    if (route.includes('/commands')) return { ...target, command: await addCommand(target.box) }
    if (route.includes('/sessions/')) return { ...target, session: (await credentials.addSession(user)).id }
    if (route.includes('/port-shares/')) return { ...target, share: await addShare(key, target.box) }
    if (route.includes('/environments/')) return { ...target, environment: await addEnvironment(key) }
    if (route.includes('/secrets')) return { ...target, ...(await addSecret(key, target.box)) }
    if (route.includes('/aws-')) return { ...target, ...(await addAws(user)) }
    if (route.includes('/keys/')) return { ...target, key: (await credentials.addKey(user)).id }
    if (route.includes('/members/'))
      return { ...target, member: (await credentials.addUser(user.workspaceId, 'member')).id }
    return { ...target, box: await addBox(key) }
  }

  return { add, renew, waitForState }
}
