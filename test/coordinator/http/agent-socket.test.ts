// The unix socket for agents: any length of path, replaced by the next coordinator, removed at the close.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { AGENT_SOCKET_FILE, listenOnAgentSocket } from '../../../coordinator/http/agent-socket.ts'
import { createTempDir } from '../../support/temp-dir.ts'

t.test('serves the HTTP server in a directory with a long path', async (t) => {
  const parent = join(createTempDir(t, 'agent-socket'), 'long-'.repeat(30))
  mkdirSync(parent)
  const dir = join(parent, 'socket')
  mkdirSync(dir)
  writeFileSync(join(dir, AGENT_SOCKET_FILE), 'left by a killed coordinator')
  const server = createServer((_request, response) => response.end('hello'))
  t.teardown(() => server.closeAllConnections())
  const socket = await listenOnAgentSocket(dir, server)
  // A process changes to the directory to connect, because the path is too long.
  const previousDir = process.cwd()
  process.chdir(dir)
  t.teardown(() => process.chdir(previousDir))
  const body = await new Promise((resolve, reject) => {
    request({ socketPath: AGENT_SOCKET_FILE, agent: false }, (response) => resolve(text(response)))
      .on('error', reject)
      .end()
  })
  t.equal(body, 'hello')
  await socket.close()
  t.notOk(existsSync(join(dir, AGENT_SOCKET_FILE)))
})
