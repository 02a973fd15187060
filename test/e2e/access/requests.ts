// A valid request for each route of docs/access.md, for given ids.

/** What the ids in paths and bodies refer to. */
export type Target = {
  box: string
  snapshot: string
  /** A command record of the box. */
  command: string
  operation: string
  environment: string
  /** A token that enrolls a machine. */
  enrollment: string
  /** A link to a port of the box. */
  share: string
  /** A secret that is granted to the box and mounted on it. */
  secret: string
  grant: string
  mount: string
  awsRole: string
  /** A link that connects an AWS role. */
  awsConnect: string
  session: string
  key: string
  member: string
  workspaceName: string
  workspace: string
}

type Request = (target: Target) => [path: string, body?: object | string]

const ISO = () => new Date().toISOString()
const PROCESS = 'p_000000000000000000000000'
const RUN = 'run_000000000000000000000000'
export const newSecretName = () => `S_${crypto.randomUUID().replaceAll('-', '').toUpperCase()}`

const controlRequests: Record<string, Request> = {
  'GET /me': () => ['/me'],
  'GET /boxes': () => ['/boxes'],
  'GET /feed': () => ['/feed'],
  'POST /boxes': () => ['/boxes', {}],
  'GET /boxes/{id}': ({ box }) => [`/boxes/${box}`],
  'PATCH /boxes/{id}': ({ box }) => [`/boxes/${box}`, { autoPauseMin: 30 }],
  'DELETE /boxes/{id}': ({ box }) => [`/boxes/${box}`],
  'POST /boxes/{id}/wake': ({ box }) => [`/boxes/${box}/wake`],
  'POST /boxes/{id}/suspend': ({ box }) => [`/boxes/${box}/suspend`],
  // Without effect: the current tier and region.
  'POST /boxes/{id}/resize': ({ box }) => [`/boxes/${box}/resize`, { target_tier: 'lite' }],
  'POST /boxes/{id}/region': ({ box }) => [`/boxes/${box}/region`, { region: 'us-west-2' }],
  'POST /boxes/{id}/owner': ({ box, member }) => [`/boxes/${box}/owner`, { ownerUserId: member }],
  'POST /boxes/{id}/fork': ({ box }) => [`/boxes/${box}/fork`, {}],
  'POST /boxes/{id}/template': ({ box }) => [`/boxes/${box}/template`, { name: `taken-${box}` }],
  'GET /boxes/{id}/metrics': ({ box }) => [`/boxes/${box}/metrics`],
  'GET /metrics/cpu': ({ box }) => [`/metrics/cpu?boxes=${box}`],
  'GET /boxes/{id}/procs-at': ({ box }) => [`/boxes/${box}/procs-at?t=${Math.floor(Date.now() / 1000)}`],
  'GET /boxes/{id}/port-shares': ({ box }) => [`/boxes/${box}/port-shares`],
  'POST /boxes/{id}/port-shares': ({ box }) => [`/boxes/${box}/port-shares`, { port: 3000 }],
  'GET /port-shares': () => ['/port-shares'],
  'DELETE /port-shares/{id}': ({ share }) => [`/port-shares/${share}`],
  'POST /port-shares/{id}/open': ({ share }) => [`/port-shares/${share}/open`],
  'POST /boxes/{id}/tickets': ({ box }) => [`/boxes/${box}/tickets`, {}],
  'POST /boxes/{id}/download-links': ({ box }) => [`/boxes/${box}/download-links`, { path: 'notes' }],
  // An unknown token: a link works once, and for its creator.
  'GET /downloads/{token}': () => ['/downloads/unknown'],
  'GET /machines': () => ['/machines'],
  'POST /machines': () => ['/machines', {}],
  'DELETE /machines/{id}': ({ enrollment }) => [`/machines/${enrollment}`],
  'GET /boxes/{id}/commands': ({ box }) => [`/boxes/${box}/commands`],
  'GET /boxes/{id}/commands/{commandId}': ({ box, command }) => [`/boxes/${box}/commands/${command}`],
  'GET /boxes/{id}/commands/{commandId}/output': ({ box, command }) => [
    `/boxes/${box}/commands/${command}/output`,
  ],
  'DELETE /boxes/{id}/commands/{commandId}': ({ box, command }) => [`/boxes/${box}/commands/${command}`],
  'DELETE /boxes/{id}/commands': ({ box }) => [`/boxes/${box}/commands`],
  'GET /snapshots': () => ['/snapshots'],
  'POST /snapshots': ({ box }) => ['/snapshots', { boxId: box, name: 'taken' }],
  'DELETE /snapshots/{id}': ({ snapshot }) => [`/snapshots/${snapshot}`],
  'POST /snapshots/{id}/restore': ({ snapshot }) => [`/snapshots/${snapshot}/restore`, {}],
  'POST /snapshots/{id}/template': ({ snapshot }) => [
    `/snapshots/${snapshot}/template`,
    { name: `base-${snapshot}` },
  ],
  'DELETE /snapshots/{id}/template': ({ snapshot }) => [`/snapshots/${snapshot}/template`],
  'GET /secrets': () => ['/secrets'],
  'POST /secrets': () => ['/secrets', { name: newSecretName(), value: 'value' }],
  'PATCH /secrets/{id}': ({ secret }) => [`/secrets/${secret}`, { value: 'other' }],
  'DELETE /secrets/{id}': ({ secret }) => [`/secrets/${secret}`],
  'POST /secrets/{id}/grants': ({ secret, box }) => [`/secrets/${secret}/grants`, { boxId: box }],
  'DELETE /secrets/{id}/grants/{grantId}': ({ secret, grant }) => [`/secrets/${secret}/grants/${grant}`],
  'GET /secrets/{id}/usage': ({ secret }) => [`/secrets/${secret}/usage`],
  'GET /boxes/{id}/secrets': ({ box }) => [`/boxes/${box}/secrets`],
  'POST /boxes/{id}/secrets': ({ box, secret }) => [
    `/boxes/${box}/secrets`,
    { secretId: secret, envName: newSecretName() },
  ],
  'DELETE /boxes/{id}/secrets/{mountId}': ({ box, mount }) => [`/boxes/${box}/secrets/${mount}`],
  // No region of the tests has images.
  'GET /regions': () => ['/regions'],
  'GET /images': () => ['/images'],
  'POST /images': () => ['/images', { image: 'debian:12' }],
  'DELETE /images': () => ['/images?image=debian:12'],
  'GET /operations/{id}': ({ operation }) => [`/operations/${operation}`],
  'GET /environments': () => ['/environments'],
  'POST /environments': () => ['/environments', { name: crypto.randomUUID() }],
  'PATCH /environments/{id}': ({ environment }) => [`/environments/${environment}`, { description: ISO() }],
  'DELETE /environments/{id}': ({ environment }) => [`/environments/${environment}`],
  'POST /environments/{id}/default': ({ environment }) => [`/environments/${environment}/default`],
  'POST /environments/{id}/toggles': ({ environment }) => [
    `/environments/${environment}/toggles`,
    { git: true },
  ],
  'POST /environments/{id}/vars': ({ environment }) => [
    `/environments/${environment}/vars`,
    { name: 'A', value: ISO() },
  ],
  'DELETE /environments/{id}/vars/{name}': ({ environment }) => [`/environments/${environment}/vars/A`],
  'PUT /environments/{id}/files': ({ environment }) => [
    `/environments/${environment}/files`,
    { path: '~/notes', content: ISO() },
  ],
  'DELETE /environments/{id}/files': ({ environment }) => [`/environments/${environment}/files?path=~/notes`],
  'POST /environments/{id}/repos': ({ environment }) => [
    `/environments/${environment}/repos`,
    { repo: 'a/b', ref: 'main' },
  ],
  'DELETE /environments/{id}/repos': ({ environment }) => [`/environments/${environment}/repos?repo=a/b`],
  'POST /environments/{id}/upgrade': ({ environment }) => [`/environments/${environment}/upgrade`],
  'GET /boxes/{id}/repos': ({ box }) => [`/boxes/${box}/repos`],
  'POST /boxes/{id}/repos/update': ({ box }) => [`/boxes/${box}/repos/update`],
  'GET /audit': () => ['/audit'],
  'GET /audit/chain': () => ['/audit/chain'],
  'POST /audit': ({ box }) => ['/audit', { kind: 'exec', boxId: box }],
  'GET /audit/sink': () => ['/audit/sink'],
  'PUT /audit/sink': () => ['/audit/sink', { url: 'https://audit.example.com/' }],
  'DELETE /audit/sink': () => ['/audit/sink'],
  'GET /aws-roles': () => ['/aws-roles'],
  'POST /aws-roles': () => ['/aws-roles', { roleArn: 'arn:aws:iam::123456789012:role/deploy' }],
  'POST /aws-roles/{id}/verify': ({ awsRole }) => [`/aws-roles/${awsRole}/verify`],
  'DELETE /aws-roles/{id}': ({ awsRole }) => [`/aws-roles/${awsRole}`],
  'POST /aws-connect': () => ['/aws-connect', {}],
  'DELETE /aws-connect/{id}': ({ awsConnect }) => [`/aws-connect/${awsConnect}`],
  'GET /federation/documents': () => ['/federation/documents'],
  'POST /operator/federation/rotate': () => ['/operator/federation/rotate'],
  'GET /workspace/policies': () => ['/workspace/policies'],
  'PATCH /workspace/policies': () => ['/workspace/policies', { memberBoxLimit: 5 }],
  'GET /team/status': () => ['/team/status'],
  'POST /billing/checkout': () => ['/billing/checkout', { amountUsd: 20 }],
  'DELETE /billing/card': () => ['/billing/card'],
  'GET /operator/workspaces': () => ['/operator/workspaces'],
  'POST /operator/workspaces/{id}/credit': ({ workspace }) => [
    `/operator/workspaces/${workspace}/credit`,
    { amountUsd: 25 },
  ],
  'PUT /operator/workspaces/{id}/hold': ({ workspace }) => [
    `/operator/workspaces/${workspace}/hold`,
    { reason: 'cpu' },
  ],
  'DELETE /operator/workspaces/{id}/hold': ({ workspace }) => [`/operator/workspaces/${workspace}/hold`],
  'GET /operator/ledger-check': () => ['/operator/ledger-check'],
  'GET /usage': () => ['/usage'],
  'GET /billing': () => ['/billing'],
  'GET /billing/entries': () => ['/billing/entries'],
  'GET /agents': () => ['/agents'],
  'PATCH /agents/rollout': () => ['/agents/rollout', { share: 50 }],
  'GET /session': () => ['/session'],
  'DELETE /session': () => ['/session'],
  'POST /session/workspace': ({ workspace }) => ['/session/workspace', { workspaceId: workspace }],
  'PATCH /session/user': () => ['/session/user', { name: 'renamed' }],
  'POST /session/email': () => ['/session/email', { email: `${crypto.randomUUID()}@example.com` }],
  'POST /session/email/confirm': () => ['/session/email/confirm', { id: 'sic_0', code: 'BBBB-BBBB' }],
  'GET /sessions': () => ['/sessions'],
  'DELETE /sessions/{id}': ({ session }) => [`/sessions/${session}`],
  'GET /keys': () => ['/keys'],
  'POST /keys': () => ['/keys', { name: 'ci' }],
  'GET /keys/{id}': ({ key }) => [`/keys/${key}`],
  'PATCH /keys/{id}': ({ key }) => [`/keys/${key}`, { name: 'renamed' }],
  'POST /keys/{id}/rotate': ({ key }) => [`/keys/${key}/rotate`],
  'DELETE /keys/{id}': ({ key }) => [`/keys/${key}`],
  'GET /members': () => ['/members'],
  'POST /members': () => ['/members', { email: `${crypto.randomUUID()}@example.com`, role: 'member' }],
  'PATCH /members/{id}': ({ member }) => [`/members/${member}`, { role: 'member' }],
  'DELETE /members/{id}': ({ member }) => [`/members/${member}`],
  'POST /workspaces': () => ['/workspaces', { name: `created ${ISO()}` }],
  'GET /workspace': () => ['/workspace'],
  'PATCH /workspace': ({ workspaceName }) => ['/workspace', { name: workspaceName }],
  'POST /workspace/close': ({ workspaceName }) => ['/workspace/close', { name: workspaceName }],
  'POST /workspace/reopen': () => ['/workspace/reopen'],
}

const edgeRequests: Record<string, Request> = {
  'POST /exec': () => ['/exec', { command: 'true' }],
  'GET /exec': () => ['/exec'],
  'GET /exec/{processId}': () => [`/exec/${PROCESS}`],
  'DELETE /exec/{processId}': () => [`/exec/${PROCESS}`],
  'GET /exec/{processId}/stream': () => [`/exec/${PROCESS}/stream`],
  'GET /exec/{processId}/attach': () => [`/exec/${PROCESS}/attach`],
  'GET /files': () => ['/files?path=notes'],
  'PUT /files': () => ['/files', { path: 'notes', content: 'text' }],
  'DELETE /files': () => ['/files?path=notes'],
  'GET /files/list': () => ['/files/list?path=~'],
  'GET /files/stat': () => ['/files/stat?path=notes'],
  'POST /files/mkdir': () => ['/files/mkdir', { path: 'notes' }],
  'POST /files/move': () => ['/files/move', { from: 'notes', to: 'notes' }],
  'GET /download': () => ['/download?path=notes'],
  'PUT /upload': () => ['/upload?path=notes', 'text'],
  'GET /processes': () => ['/processes'],
  'POST /terminal/sessions': () => ['/terminal/sessions', {}],
  'GET /terminal/sessions': () => ['/terminal/sessions'],
  'DELETE /terminal/sessions/{session}': () => ['/terminal/sessions/main'],
  'GET /terminal': () => ['/terminal'],
  'GET /ports/{port}': () => ['/ports/5432'],
  'GET /desktop': () => ['/desktop'],
  'POST /desktop/start': () => ['/desktop/start', {}],
  'GET /desktop/stream': () => ['/desktop/stream'],
  'DELETE /desktop': () => ['/desktop'],
  'POST /desktop/stop': () => ['/desktop/stop', {}],
  'POST /prompts': () => ['/prompts', { provider: 'claude', prompt: 'hello' }],
  'GET /prompts': () => ['/prompts'],
  'GET /prompts/conversations': () => ['/prompts/conversations'],
  'GET /prompts/events': () => ['/prompts/events'],
  'POST /prompts/interrupt': () => ['/prompts/interrupt'],
  'GET /prompts/{runId}': () => [`/prompts/${RUN}`],
  'GET /prompts/{runId}/events': () => [`/prompts/${RUN}/events?follow=1`],
  'POST /prompts/{runId}/interrupt': () => [`/prompts/${RUN}/interrupt`],
}

/** The routes that are WebSockets. */
export const WEBSOCKETS = [
  'GET /feed',
  'GET /terminal',
  'GET /exec/{processId}/attach',
  'GET /ports/{port}',
  'GET /desktop/stream',
]

/** The path with its prefix, and the body. Throws for a route without a request. */
export function createRequest(
  { route, host }: { route: string; host: 'control' | 'edge' },
  target: Target,
): { path: string; body?: object | string | undefined } {
  const request = (host === 'edge' ? edgeRequests : controlRequests)[route]
  if (!request) throw new Error(`there is no request for ${route}`)
  const [path, body] = request(target)
  return { path: (host === 'edge' ? `/v1/box/${target.box}` : '/api/v1') + path, body }
}
