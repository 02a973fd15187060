// Spec §4.15: reading and writing files over HTTP on a real box.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { createTempDir } from '../support/temp-dir.ts'
import { DEADLINE_MS } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

t.test('writes and reads files of a box', async (t) => {
  const { boxRequest, exec, url, key, box } = sharedCoordinator
  const { stdout: home } = await exec('printf %s "$HOME"')
  const binary = { headers: { 'content-type': 'application/octet-stream' } }
  const download = async (path: string) => {
    const response = await fetch(`${url}/v1/box/${box.hostname}/download?path=${encodeURIComponent(path)}`, {
      headers: { authorization: `Bearer ${key}`, 'accept-encoding': 'gzip' },
    })
    return { headers: response.headers, body: Buffer.from(await response.arrayBuffer()) }
  }

  await t.test('writes and reads small files as JSON', async (t) => {
    t.match(await boxRequest('PUT', '/files', { path: 'a.txt', content: 'grüße\n', mode: '0750' }), {
      status: 200,
      json: { ok: true, type: 'file.written', path: `${home}/a.txt`, size: 8 },
    })
    t.match(await boxRequest('GET', '/files?path=~/a.txt'), {
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
    await boxRequest('PUT', '/files', { path: 'noise', content: noise, encoding: 'base64' })
    t.match((await boxRequest('GET', '/files?path=noise')).json, { encoding: 'base64', content: noise })
    const large = 'x'.repeat(1024 * 1024)
    t.match(await boxRequest('PUT', '/files', { path: 'large', content: large }), { status: 200 })
    t.equal((await boxRequest('GET', '/files?path=large')).json.content, large)
  })

  await t.test('uploads and downloads files, through the tunnel or a dial-back connection', async (t) => {
    for (const size of [0, 1, 128 * 1024, 128 * 1024 + 1, 5_000_000]) {
      const content = randomBytes(size)
      t.match(await boxRequest('PUT', '/upload?path=blob&mode=600', content, binary), {
        status: 200,
        json: { ok: true, type: 'file.uploaded', path: `${home}/blob`, size },
      })
      const { headers, body } = await download('blob')
      t.equal(headers.get('content-length'), String(size))
      t.equal(headers.get('content-type'), 'application/octet-stream')
      t.equal(headers.get('x-service-path'), `${home}/blob`)
      t.ok(body.equals(content), `${size} bytes are unchanged`)
    }
    t.match(await exec('stat -c %a blob'), { stdout: '600\n' })
  })

  await t.test('supports HEAD, Range and ETag on a download', async (t) => {
    const request = (method: string, path: string, headers: Record<string, string> = {}) =>
      fetch(`${url}/v1/box/${box.hostname}/download?path=${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, ...headers },
      })
    for (const size of [1000, 500_000]) {
      const content = randomBytes(size)
      await boxRequest('PUT', '/upload?path=ranged', content, binary)
      const head = await request('HEAD', 'ranged')
      t.equal(head.status, 200)
      t.equal(head.headers.get('content-length'), String(size))
      t.equal(await head.text(), '')
      const etag = head.headers.get('etag') ?? ''
      const part = await request('GET', 'ranged', { range: `bytes=${size - 300}-`, 'if-range': etag })
      t.equal(part.status, 206)
      t.equal(part.headers.get('content-range'), `bytes ${size - 300}-${size - 1}/${size}`)
      t.equal(part.headers.get('etag'), etag)
      t.ok(content.subarray(size - 300).equals(Buffer.from(await part.arrayBuffer())))
      t.equal((await request('GET', 'ranged', { 'if-none-match': etag })).status, 304)
      const outside = await request('GET', 'ranged', { range: `bytes=${size}-` })
      t.match(await outside.json(), { ok: false, error: { code: 'range_not_satisfiable' } })
      t.equal(outside.headers.get('content-range'), `bytes */${size}`)
      t.equal((await request('HEAD', 'ranged', { range: `bytes=${size}-` })).status, 416)
    }
    await exec('touch unreadable; chmod 000 unreadable')
    for (const [path, status] of [
      ['no-such-file', 404],
      ['a%00b', 400],
      ['unreadable', 403],
    ] as const)
      t.equal((await request('HEAD', path)).status, status, path)
    t.equal((await request('HEAD', '/tmp')).headers.get('x-service-content'), 'directory')
  })

  await t.test('serves HEAD where it serves GET', async (t) => {
    const started = await boxRequest('POST', '/exec', { command: 'true', detached: true })
    const { processId } = started.json
    for (const path of ['/exec', `/exec/${processId}`, `/exec/${processId}/stream`, '/files?path=blob2']) {
      await boxRequest('PUT', '/files', { path: 'blob2', content: 'x' })
      const head = await boxRequest('HEAD', path)
      t.match(head, { status: 200, text: '' }, path)
      t.equal(head.headers.get('content-type'), (await boxRequest('GET', path)).headers.get('content-type'))
    }
    const unknown = `p_${'0'.repeat(24)}`
    t.equal((await boxRequest('HEAD', `/exec/${unknown}/stream`)).status, 404)
    t.equal((await boxRequest('HEAD', '/upload?path=x')).status, 405)
    for (const path of [
      '/healthz',
      '/readyz',
      '/openapi.json',
      '/api/v1/me',
      '/api/v1/boxes',
      `/api/v1/boxes/${box.id}/commands`,
    ]) {
      const head = await fetch(url + path, { method: 'HEAD', headers: { authorization: `Bearer ${key}` } })
      t.equal(head.status, 200, path)
      t.match(head.headers.get('content-type'), 'application/json', path)
    }
  })

  await t.test('accepts an upload without a declared length', async (t) => {
    const chunk = randomBytes(300_000)
    const body = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 3; i++) controller.enqueue(chunk)
        controller.close()
      },
    })
    const response = await fetch(`${url}/v1/box/${box.hostname}/upload?path=chunked`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key}` },
      body,
      duplex: 'half',
    } as RequestInit)
    t.match(await response.json(), { type: 'file.uploaded', size: 900_000 })
    t.ok((await download('chunked')).body.equals(Buffer.concat([chunk, chunk, chunk])))
  })

  await t.test('downloads a directory as an archive that tar can extract', async (t) => {
    await exec(
      'mkdir -p tree/empty tree/größe && echo one > tree/größe/ünïcode.txt && ln -s größe/ünïcode.txt tree/link && printf "#!/bin/sh\\n" > tree/run && chmod 755 tree/run',
    )
    const { headers, body } = await download('tree')
    t.equal(headers.get('content-type'), 'application/x-tar')
    t.equal(headers.get('x-service-content'), 'directory')
    t.equal(headers.get('content-encoding'), null)
    const dir = createTempDir(t, 'tar')
    writeFileSync(join(dir, 'tree.tar'), body)
    execFileSync('tar', ['-x', '-f', join(dir, 'tree.tar'), '-C', dir])
    t.same(readdirSync(join(dir, 'tree/empty')), [])
    t.equal(readFileSync(join(dir, 'tree/größe/ünïcode.txt'), 'utf8'), 'one\n')
    t.equal(readlinkSync(join(dir, 'tree/link')), 'größe/ünïcode.txt')
    t.equal(statSync(join(dir, 'tree/run')).mode & 0o777, 0o755)
  })

  await t.test('lists, creates, moves and removes directories', async (t) => {
    const path = `${home}/dirs`
    t.match(await boxRequest('POST', '/files/mkdir', { path: 'dirs/a/b', parents: true }), {
      status: 200,
      json: { ok: true, type: 'directory.created', path: `${path}/a/b`, created: true },
    })
    // The entries have more than 64 KiB as JSON, which is not sent as a message.
    await exec(
      String.raw`cd dirs && seq -f 'file%04.0f' 1 1200 | xargs touch && touch "$(printf '\377')" && ln -s a link`,
    )
    const first = await boxRequest('GET', '/files/list?path=dirs')
    t.match(first, { status: 200, json: { type: 'file.list', path, entries: { length: 1000 } } })
    t.match(first.json.entries[0], { name: 'a', type: 'directory' })
    const { nextCursor } = first.json
    const second = await boxRequest('GET', `/files/list?path=dirs&cursor=${nextCursor}`)
    t.equal(second.json.nextCursor, null)
    t.equal(second.json.entries.length, 203)
    t.match(second.json.entries.slice(-2), [
      { name: 'link', type: 'symlink', target: 'a', targetType: 'directory' },
      { name: '\ufffd', nameBase64: '/w==' },
    ])
    t.match(await boxRequest('GET', '/files/stat?path=dirs/link'), {
      status: 200,
      json: { type: 'file.stat', path: `${path}/link`, entry: { name: 'link', type: 'symlink' } },
    })
    t.match(await boxRequest('POST', '/files/move', { from: 'dirs/file0001', to: 'dirs/a/moved' }), {
      status: 200,
      json: { type: 'file.moved', from: `${path}/file0001`, path: `${path}/a/moved` },
    })
    for (const [method, route, body, status, code] of [
      ['GET', '/files/list?path=dirs/file0002', undefined, 400, 'invalid_path'],
      ['GET', '/files/list?path=dirs&limit=1001', undefined, 400, 'invalid_request'],
      ['GET', '/files/stat?path=dirs/none', undefined, 404, 'not_found'],
      ['POST', '/files/mkdir', { path: 'dirs/a' }, 409, 'path_exists'],
      ['POST', '/files/mkdir', {}, 400, 'invalid_path'],
      ['POST', '/files/move', { from: 'dirs/link', to: 'dirs/a' }, 409, 'path_exists'],
      ['DELETE', '/files?path=dirs', undefined, 409, 'directory_not_empty'],
      ['DELETE', '/files?path=/&recursive=1', undefined, 403, 'permission_denied'],
      ['DELETE', '/files?path=~&recursive=1', undefined, 403, 'permission_denied'],
      ['DELETE', '/files', undefined, 400, 'invalid_path'],
    ] as const)
      t.match(
        await boxRequest(method, route, body),
        { status, json: { ok: false, error: { code } } },
        `${method} ${route}`,
      )
    t.match(await boxRequest('DELETE', '/files?path=dirs&recursive=1'), {
      status: 200,
      json: { ok: true, type: 'file.removed', path },
    })
    t.match(await exec('ls -d dirs'), { exitCode: 2 })
  })

  await t.test(
    'a large upload that is rejected receives the response, and the next request too',
    async (t) => {
      await exec('touch read-only; chmod 400 read-only; echo old > target')
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      t.teardown(() => agent.destroy())
      const send = (method: string, path: string, chunks: Buffer[] = [], headers = {}) =>
        new Promise<number | undefined>((resolve, reject) => {
          const request = httpRequest(url + path, {
            method,
            agent,
            headers: { authorization: `Bearer ${key}`, ...headers },
          })
          request.setTimeout(DEADLINE_MS, () => request.destroy(new Error(`no response: ${method} ${path}`)))
          request.once('error', reject)
          request.once('response', (response) => {
            response.resume()
            response.once('end', () => resolve(response.statusCode))
          })
          for (const chunk of chunks) request.write(chunk)
          request.end()
        })
      const chunks = Array.from({ length: 4 }, () => Buffer.alloc(1_000_000))
      const length = { 'content-length': 4_000_000 }
      for (const [target, status] of [
        ['no-such-box/upload?path=target', 404],
        [`${box.hostname}/upload?path=a%00b`, 400],
        [`${box.hostname}/upload?path=/tmp`, 400],
        [`${box.hostname}/upload?path=no/such/parent`, 404],
        [`${box.hostname}/upload?path=read-only`, 403],
      ] as const)
        for (let i = 0; i < 6; i++) {
          t.equal(await send('PUT', `/v1/box/${target}`, chunks, i % 2 === 0 ? length : {}), status, target)
          t.equal(await send('GET', `/v1/box/${box.hostname}/files?path=target`), 200)
        }
    },
  )

  await t.test('rejects each kind of invalid request with its code', async (t) => {
    const expectError = async (method: string, path: string, body: unknown, status: number, code: string) =>
      t.match(
        await boxRequest(method, path, body, typeof body === 'string' ? binary : {}),
        { status, json: { ok: false, error: { code } } },
        `${method} ${path}`,
      )
    await exec('touch secret; chmod 000 secret')
    for (const route of ['/files', '/download']) {
      await expectError('GET', route, undefined, 400, 'invalid_path')
      await expectError('GET', `${route}?path=`, undefined, 400, 'invalid_path')
      await expectError('GET', `${route}?path=a%0Ab`, undefined, 400, 'invalid_path')
      await expectError('GET', `${route}?path=a%00b`, undefined, 400, 'invalid_path')
      await expectError('GET', `${route}?path=/no/such`, undefined, 404, 'not_found')
      await expectError('GET', `${route}?path=secret`, undefined, 403, 'permission_denied')
    }
    await expectError('GET', '/files?path=/tmp', undefined, 400, 'invalid_path')
    await exec('head -c 1048577 /dev/zero > oversized')
    await expectError('GET', '/files?path=oversized', undefined, 413, 'payload_too_large')
    await expectError('PUT', '/files', { path: 'x', content: 'y'.repeat(1048577) }, 413, 'payload_too_large')
    await expectError('PUT', '/files', { path: 'x', content: 'y', mode: '9' }, 400, 'invalid_request')
    await expectError('PUT', '/files', { path: 'x' }, 400, 'invalid_request')
    await expectError('PUT', '/files', { content: 'x' }, 400, 'invalid_path')
    await expectError('PUT', '/files', { path: 'no/such/parent', content: 'x' }, 404, 'not_found')
    await expectError('PUT', '/files', { path: '/usr/x', content: 'x' }, 403, 'permission_denied')
    await expectError('PUT', '/upload', 'x', 400, 'invalid_path')
    await expectError('PUT', '/upload?path=/tmp', 'x', 400, 'invalid_path')
    await expectError('PUT', '/upload?path=x&mode=rw', 'x', 400, 'invalid_request')
    await expectError('PUT', '/upload?path=no/such/parent', 'x', 404, 'not_found')
    const wrongMethod = await boxRequest('POST', '/files')
    t.match(wrongMethod, { status: 405, json: { error: { code: 'method_not_allowed' } } })
    t.equal(wrongMethod.headers.get('allow'), 'DELETE, GET, HEAD, PUT')
  })
})
