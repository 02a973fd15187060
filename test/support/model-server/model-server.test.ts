// The fake model server speaks the three APIs as the coding agents use them.
import { request as httpRequest } from 'node:http'
import t from 'tap'
import { toolResults, userTexts } from './model-request.ts'
import { startModelServer } from './model-server.ts'
import { cutStream, failure, holdStream, modelNotFound, text, toolCall } from './replies.ts'

const CHAT = {
  path: '/v1/chat/completions',
  body: (prompt: string) => ({
    model: 'm',
    stream: true,
    reasoning_effort: 'low',
    tools: [{ type: 'function', function: { name: 'run' } }],
    messages: [{ role: 'user', content: prompt }],
  }),
}
const MESSAGES = {
  path: '/v1/messages?beta=true',
  body: (prompt: string) => ({
    model: 'm',
    stream: true,
    output_config: { effort: 'low' },
    tools: [{ name: 'run' }],
    messages: [{ role: 'user', content: [{ type: 'text', text: prompt }] }],
  }),
}
const RESPONSES = {
  path: '/v1/responses',
  body: (prompt: string) => ({
    model: 'm',
    stream: true,
    reasoning: { effort: 'low' },
    tools: [{ type: 'function', name: 'run' }],
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: prompt }] }],
  }),
}

const post = (url: string, body: object) => fetch(url, { method: 'POST', body: JSON.stringify(body) })
const events = (stream: string) =>
  [...stream.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json))

for (const api of [CHAT, MESSAGES, RESPONSES]) {
  t.test(`${api.path}: streams texts and tool calls, and records the request`, async (t) => {
    const models = await startModelServer(t)
    models.reply({ reasoning: 'because', text: ['one ', 'two'] }, toolCall('run', { command: 'true' }))
    const first = await post(models.url + api.path, api.body('hello'))
    t.match(first.headers.get('content-type'), 'text/event-stream')
    const stream = await first.text()
    for (const part of ['because', 'one ', 'two']) t.match(stream, JSON.stringify(part))
    t.ok(events(stream).length > 3)
    const second = await (await post(models.url + api.path, api.body('again'))).text()
    t.match(second, JSON.stringify(JSON.stringify({ command: 'true' })))
    t.match(models.scripted, [
      { model: 'm', effort: 'low', tools: ['run'], messages: [{ role: 'user', text: 'hello' }] },
      { messages: [{ role: 'user', text: 'again' }] },
    ])
  })

  t.test(`${api.path}: fails, and cuts the stream`, async (t) => {
    const models = await startModelServer(t)
    models.reply(failure(500, 'broken'), modelNotFound('m'), cutStream('partial'))
    const broken = await post(models.url + api.path, api.body('x'))
    t.match(
      { status: broken.status, body: await broken.json() },
      { status: 500, body: { error: { message: 'broken' } } },
    )
    t.equal((await post(models.url + api.path, api.body('x'))).status, 404)
    await t.rejects((await post(models.url + api.path, api.body('x'))).text())
  })

  t.test(`${api.path}: holds a stream until the test releases it`, async (t) => {
    const models = await startModelServer(t)
    const held = holdStream('first')
    models.reply(held.reply)
    const response = await post(models.url + api.path, api.body('x'))
    await held.started
    held.release(' rest')
    const stream = await response.text()
    t.match(stream, '"first"')
    t.match(stream, '" rest"')
  })
}

t.test('notices a client that disconnects from a held stream', async (t) => {
  const models = await startModelServer(t)
  const held = holdStream('first')
  models.reply(held.reply)
  const controller = new AbortController()
  const response = await fetch(models.url + CHAT.path, {
    method: 'POST',
    body: JSON.stringify(CHAT.body('x')),
    signal: controller.signal,
  })
  await held.started
  controller.abort()
  await t.rejects(response.text())
  await held.disconnected
})

t.test('answers requests without tools outside the script, and selects replies by marker', async (t) => {
  const models = await startModelServer(t)
  models.replyTo('[a]', text('for a'))
  models.replyTo('[b]', text('for b'))
  const title = { ...CHAT.body('title'), tools: [], stream: false }
  t.match(await (await post(models.url + CHAT.path, title)).json(), {
    choices: [{ message: { content: 'auxiliary' } }],
  })
  t.match(await (await post(models.url + CHAT.path, CHAT.body('[a] then [b]'))).text(), 'for b')
  t.match(await (await post(models.url + CHAT.path, CHAT.body('[a]'))).text(), 'for a')
  t.match(await (await post(models.url + CHAT.path, CHAT.body('[a]'))).text(), '"ok"')
  t.equal(models.scripted.length, 3)
})

t.test('separates what the user wrote from the results of tools', async (t) => {
  const models = await startModelServer(t)
  await post(models.url + MESSAGES.path, {
    ...MESSAGES.body(''),
    messages: [
      { role: 'user', content: 'question' },
      { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'run', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content: 'output' }] },
    ],
  })
  const [request] = models.requests
  t.ok(request)
  if (!request) return
  t.same(userTexts(request), ['question'])
  t.same(toolResults(request), ['output'])
})

t.test('refuses a WebSocket', async (t) => {
  const models = await startModelServer(t)
  const status = await new Promise((resolve, reject) => {
    httpRequest(`${models.url}/v1/responses`, { headers: { connection: 'upgrade', upgrade: 'websocket' } })
      .on('response', (response) => resolve(response.resume().statusCode))
      .on('error', reject)
      .end()
  })
  t.equal(status, 426)
})
