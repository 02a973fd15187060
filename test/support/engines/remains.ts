// What an engine has of the boxes and archives of all coordinators, except the files of the agent.
import { requestEngine } from './request-engine.ts'

const LABEL = 'boxwood.coordinator'
const SHARED_ROLES = ['agent']

type Labelled = { Labels?: Record<string, string> | null }

/** @param socket of Docker or Podman. Resolves with lines such as `volume boxwood-…-home`. */
export async function listEngineObjects(socket: string): Promise<string[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: [LABEL] }))
  async function list<T extends Labelled>(path: string): Promise<T[]> {
    const { status, text } = await requestEngine(socket, 'GET', path)
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
    const content = JSON.parse(text)
    const found: T[] = Array.isArray(content) ? content : (content.Volumes ?? [])
    return found.filter(({ Labels }) => !SHARED_ROLES.includes(Labels?.['boxwood.role'] ?? ''))
  }
  const containers = await list<Labelled & { Names: string[] }>(`/containers/json?all=1&filters=${filters}`)
  const volumes = await list<Labelled & { Name: string }>(`/volumes?filters=${filters}`)
  const networks = await list<Labelled & { Name: string }>(`/networks?filters=${filters}`)
  const images = await list<Labelled & { RepoTags: string[] | null; Id: string }>(
    `/images/json?filters=${filters}`,
  )
  return [
    ...containers.map(({ Names }) => `container ${Names[0]}`),
    ...volumes.map(({ Name }) => `volume ${Name}`),
    ...networks.map(({ Name }) => `network ${Name}`),
    ...images
      .filter(({ Labels }) => Labels?.['boxwood.role'] === 'archive')
      .map(({ Id, RepoTags }) => `image ${RepoTags?.[0] ?? Id}`),
  ].sort()
}
