// Spec §5 and §7.2: API keys on the command routes, and the permissions of the box user.
import t from 'tap'
import { newUuid } from '../../shared/ids.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

t.test('command routes reject invalid keys, and directories that the box user may not enter', async (t) => {
  const coordinator = sharedCoordinator
  const { boxRequest, exec } = coordinator
  const { json } = await boxRequest('POST', '/exec', { command: 'sleep 60', detached: true })
  const processPath = `/exec/${json.processId}`
  const routes = [
    ['POST', '/exec', { command: 'true' }],
    ['POST', '/exec', { command: 'true', detached: true }],
    ['GET', '/exec'],
    ['GET', processPath],
    ['GET', `${processPath}/stream`],
    ['DELETE', processPath],
  ] as const
  const expectFromAllRoutes = async (key: string | null, status: number, code: string) => {
    for (const [method, path, body] of routes)
      t.match(
        await boxRequest(method, path, body, { key }),
        { status, json: { ok: false, error: { code } } },
        `${method} ${path}: ${code}`,
      )
  }
  await expectFromAllRoutes(null, 401, 'unauthorized')
  await expectFromAllRoutes('dcp_wrong', 401, 'unauthorized')
  await expectFromAllRoutes(await createLimitedKey(coordinator, { expiresAt: 1 }), 401, 'token_expired')
  await expectFromAllRoutes(await createLimitedKey(coordinator, { boxIds: [newUuid()] }), 404, 'not_found')
  t.match(
    await boxRequest('GET', processPath),
    { status: 200, json: { running: true } },
    'no rejected request killed the process',
  )

  await exec('mkdir closed && chmod 0 closed')
  for (const detached of [false, true])
    t.match(
      await boxRequest('POST', '/exec', { command: 'pwd', cwd: 'closed', detached }),
      { status: 403, json: { ok: false, error: { code: 'permission_denied' } } },
      'a working directory that the box user may not enter',
    )
})
