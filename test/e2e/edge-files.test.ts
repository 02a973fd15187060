// Spec §4.15: files over real HTTP on a real box.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createTempDir } from '../support/temp-dir.ts'
import { edgeBox } from './edge-box.ts'

t.test('files go in and out of a box', async (t) => {
  const { ask, exec, url, key, box } = await edgeBox(t)
  const { stdout: home } = await exec('printf %s "$HOME"')
  const bytes = { headers: { 'content-type': 'application/octet-stream' } }
  const fetchBytes = async (path: string) => {
    const answer = await fetch(`${url}/v1/box/${box.hostname}/download?path=${encodeURIComponent(path)}`, {
      headers: { authorization: `Bearer ${key}`, 'accept-encoding': 'gzip' },
    })
    return { answer, body: Buffer.from(await answer.arrayBuffer()) }
  }

  await t.test('small ones as JSON', async (t) => {
    t.match(await ask('PUT', '/files', { path: 'a.txt', content: 'grüße\n', mode: '0750' }), {
      status: 200,
      json: { ok: true, type: 'file.written', path: `${home}/a.txt`, size: 8 },
    })
    t.match(await ask('GET', '/files?path=~/a.txt'), {
      status: 200,
      json: {
        ok: true,
        type: 'file.read',
        path: `${home}/a.txt`,
        encoding: 'utf8',
        size: 8,
        mode: '0750',
        content: 'grüße\n',
      },
    })
    const noise = randomBytes(1000).toString('base64')
    await ask('PUT', '/files', { path: 'noise', content: noise, encoding: 'base64' })
    t.match((await ask('GET', '/files?path=noise')).json, { encoding: 'base64', content: noise })
    const large = 'x'.repeat(1024 * 1024)
    t.match(await ask('PUT', '/files', { path: 'large', content: large }), { status: 200 })
    t.equal((await ask('GET', '/files?path=large')).json.content, large)
  })

  await t.test('any of them as bytes, through the tunnel and beside it', async (t) => {
    for (const size of [0, 1, 128 * 1024, 128 * 1024 + 1, 5_000_000]) {
      const content = randomBytes(size)
      t.match(await ask('PUT', '/upload?path=blob&mode=600', content, bytes), {
        status: 200,
        json: { ok: true, type: 'file.uploaded', path: `${home}/blob`, size },
      })
      const { answer, body } = await fetchBytes('blob')
      t.equal(answer.headers.get('content-length'), String(size))
      t.equal(answer.headers.get('content-type'), 'application/octet-stream')
      t.equal(answer.headers.get('x-service-path'), `${home}/blob`)
      t.ok(body.equals(content), `${size} bytes come back as they went`)
    }
    t.match(await exec('stat -c %a blob'), { stdout: '600\n' })
  })

  await t.test('a body without a declared length', async (t) => {
    const piece = randomBytes(300_000)
    const body = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 3; i++) controller.enqueue(piece)
        controller.close()
      },
    })
    const answer = await fetch(`${url}/v1/box/${box.hostname}/upload?path=chunked`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key}` },
      body,
      duplex: 'half',
    } as RequestInit)
    t.match(await answer.json(), { type: 'file.uploaded', size: 900_000 })
    t.ok((await fetchBytes('chunked')).body.equals(Buffer.concat([piece, piece, piece])))
  })

  await t.test('a folder as a tar that tar -x takes', async (t) => {
    await exec(
      'mkdir -p tree/empty tree/größe && echo one > tree/größe/ünïcode.txt && ln -s größe/ünïcode.txt tree/link && printf "#!/bin/sh\\n" > tree/run && chmod 755 tree/run',
    )
    const { answer, body } = await fetchBytes('tree')
    t.equal(answer.headers.get('content-type'), 'application/x-tar')
    t.equal(answer.headers.get('x-service-content'), 'directory')
    t.equal(answer.headers.get('content-encoding'), null)
    const dir = createTempDir(t, 'tar')
    writeFileSync(join(dir, 'tree.tar'), body)
    execFileSync('tar', ['-x', '-f', join(dir, 'tree.tar'), '-C', dir])
    t.same(readdirSync(join(dir, 'tree/empty')), [])
    t.equal(readFileSync(join(dir, 'tree/größe/ünïcode.txt'), 'utf8'), 'one\n')
    t.equal(readlinkSync(join(dir, 'tree/link')), 'größe/ünïcode.txt')
    t.equal(statSync(join(dir, 'tree/run')).mode & 0o777, 0o755)
  })

  await t.test('each kind of bad request has its code', async (t) => {
    const refused = async (method: string, path: string, body: unknown, status: number, code: string) =>
      t.match(
        await ask(method, path, body, typeof body === 'string' ? bytes : {}),
        { status, json: { ok: false, error: { code } } },
        `${method} ${path}`,
      )
    await exec('touch secret; chmod 000 secret')
    for (const route of ['/files', '/download']) {
      await refused('GET', route, undefined, 400, 'invalid_path')
      await refused('GET', `${route}?path=`, undefined, 400, 'invalid_path')
      await refused('GET', `${route}?path=a%0Ab`, undefined, 400, 'invalid_path')
      await refused('GET', `${route}?path=a%00b`, undefined, 400, 'invalid_path')
      await refused('GET', `${route}?path=/no/such`, undefined, 404, 'not_found')
      await refused('GET', `${route}?path=secret`, undefined, 403, 'permission_denied')
    }
    await refused('GET', '/files?path=/tmp', undefined, 400, 'invalid_path')
    await exec('head -c 1048577 /dev/zero > over')
    await refused('GET', '/files?path=over', undefined, 413, 'payload_too_large')
    await refused('PUT', '/files', { path: 'x', content: 'y'.repeat(1048577) }, 413, 'payload_too_large')
    await refused('PUT', '/files', { path: 'x', content: 'y', mode: '9' }, 400, 'invalid_request')
    await refused('PUT', '/files', { path: 'x' }, 400, 'invalid_request')
    await refused('PUT', '/files', { content: 'x' }, 400, 'invalid_path')
    await refused('PUT', '/files', { path: 'no/such/parent', content: 'x' }, 404, 'not_found')
    await refused('PUT', '/files', { path: '/usr/x', content: 'x' }, 403, 'permission_denied')
    await refused('PUT', '/upload', 'x', 400, 'invalid_path')
    await refused('PUT', '/upload?path=/tmp', 'x', 400, 'invalid_path')
    await refused('PUT', '/upload?path=x&mode=rw', 'x', 400, 'invalid_request')
    await refused('PUT', '/upload?path=no/such/parent', 'x', 404, 'not_found')
    const wrong = await ask('POST', '/files')
    t.match(wrong, { status: 405, json: { error: { code: 'method_not_allowed' } } })
    t.equal(wrong.headers.get('allow'), 'GET, PUT')
  })
})
