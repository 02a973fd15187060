// Spec §5 and §7.2 on the command routes: keys that are dead, expired or for other boxes, and what the box user may not.
import t from 'tap'
import { newUuid } from '../../shared/ids.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { edgeBox } from './edge-box.ts'

t.test('who may run and follow commands', async (t) => {
  const box = await edgeBox(t)
  const { ask, exec } = box
  const { json } = await ask('POST', '/exec', { command: 'sleep 60', detached: true })
  const one = `/exec/${json.processId}`
  const routes = [
    ['POST', '/exec', { command: 'true' }],
    ['POST', '/exec', { command: 'true', detached: true }],
    ['GET', '/exec'],
    ['GET', one],
    ['GET', `${one}/stream`],
    ['DELETE', one],
  ] as const
  const each = async (key: string | null, status: number, code: string) => {
    for (const [method, path, body] of routes)
      t.match(
        await ask(method, path, body, { key }),
        { status, json: { ok: false, error: { code } } },
        `${method} ${path}: ${code}`,
      )
  }
  await each(null, 401, 'unauthorized')
  await each('dcp_wrong', 401, 'unauthorized')
  await each(await createLimitedKey(box, { expiresAt: 1 }), 401, 'token_expired')
  await each(await createLimitedKey(box, { boxIds: [newUuid()] }), 404, 'not_found')
  t.match(await ask('GET', one), { status: 200, json: { running: true } }, 'and none of them touched it')

  await exec('mkdir closed && chmod 0 closed')
  for (const detached of [false, true])
    t.match(
      await ask('POST', '/exec', { command: 'pwd', cwd: 'closed', detached }),
      { status: 403, json: { ok: false, error: { code: 'permission_denied' } } },
      'a folder that the box user may not enter',
    )
})
