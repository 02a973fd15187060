// What a key that only reads boxes reads of the files of a real box.
import t from 'tap'
import { createLimitedKey } from '../support/limited-key.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startCoordinatorWithBox } from './coordinator-with-box.ts'

t.test('a key that only reads boxes', async (t) => {
  const coordinator = await startCoordinatorWithBox(t)
  const { api, edge, waitForState } = coordinator
  const created = await api('POST', '/environments', {
    name: 'tools',
    files: [{ path: '~/.config/tool/token', content: 'secret-of-the-environment' }],
  })
  t.equal(created.status, 201)
  const { id, hostname } = (await api('POST', '/boxes', { name: 'plum', environment: 'tools' })).json.box
  await waitForState(id, 'running')
  const write = await edge(hostname, 'PUT', '/files', { path: '.npmrc', content: 'public' })
  t.equal(write.status, 200)
  const exec = (command: string) => edge(hostname, 'POST', '/exec', { command })
  await exec('mkdir -p ~/.boxwood/aws && echo token-of-aws >~/.boxwood/aws/token')
  await exec('ln ~/.config/tool/token ~/copy')

  const reader = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
  const runner = await createLimitedKey(coordinator, { access: { boxes: 'run' } })
  const toQuery = (path: string) => `?path=${encodeURIComponent(path)}`
  const read = (path: string, key: string) =>
    edge(hostname, 'GET', `/files${toQuery(path)}`, undefined, { key })
  const download = (path: string, key: string) =>
    edge(hostname, 'GET', `/download${toQuery(path)}`, undefined, { key })
  const downloadByLink = async (path: string, key: string) => {
    const { json } = await api('POST', `/boxes/${id}/download-links`, { path }, { key })
    return api('GET', json.url.slice(json.url.indexOf('/downloads/')), undefined, { key })
  }
  const paths = ['.boxwood/aws/token', '.config/tool/token', 'copy', '/proc/self/environ']

  await t.test('reads files, and no credentials', async (t) => {
    for (const path of paths) {
      for (const [name, get] of Object.entries({ read, download, downloadByLink })) {
        const refused = await get(path, reader)
        t.equal(refused.status, 403, `${name} ${path}`)
        t.match(refused.text, 'permission_denied')
        t.equal((await get(path, runner)).status, 200, `${name} ${path}: a key that runs commands`)
      }
      const head = await edge(hostname, 'HEAD', `/download${toQuery(path)}`, undefined, { key: reader })
      t.equal(head.status, 403)
    }
    const archive = await download('~', reader)
    t.equal(archive.status, 200)
    t.notMatch(archive.text, /secret-of-the-environment|token-of-aws/)
    t.match(archive.text, '.npmrc')
    t.match((await download('~', runner)).text, 'secret-of-the-environment')
    t.match((await read('.npmrc', reader)).json, { content: 'public' })
  })

  await t.test('reads no secret file of a new version', async (t) => {
    const { id: environmentId } = created.json.environment
    await api('PUT', `/environments/${environmentId}/files`, { path: '~/second', content: 'new-secret' })
    await api('POST', `/environments/${environmentId}/upgrade`)
    await waitUntil('the file is written', async () => (await read('second', runner)).status === 200)
    t.equal((await read('second', reader)).status, 403)
    t.equal((await read('copy', reader)).status, 403)
  })

  await t.test('reads them neither after the agent has connected again', async (t) => {
    await api('POST', `/boxes/${id}/suspend`)
    await waitForState(id, 'suspended')
    await api('POST', `/boxes/${id}/wake`)
    await waitForState(id, 'running')
    for (const path of ['second', '.config/tool/token', 'copy'])
      t.equal(
        await waitUntil('the agent responds', async () => {
          const { status } = await read(path, reader)
          return status === 502 ? undefined : status
        }),
        403,
        path,
      )
  })

  await t.test('a session of a member reads everything', async (t) => {
    const session = await createTestSession(coordinator)
    const { json } = await api('POST', `/boxes/${id}/download-links`, { path: 'second' }, session)
    const path = json.url.slice(json.url.indexOf('/downloads/'))
    t.equal((await api('GET', path, undefined, session)).text, 'new-secret')
  })
})
