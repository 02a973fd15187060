// The volume with the files of the agent, which all boxes of an engine mount read-only.
import { basename } from 'node:path'
import type { AgentFiles } from '../container/agent-files.ts'
import { CONTAINER_PATHS } from '../container/paths.ts'
import { ignoreStatus } from '../engine-http/errors.ts'
import { RUNTIME_LINKS } from '../local/runtime.ts'
import type { Engine } from './engine.ts'
import { withHelper } from './helper-container.ts'
import { createLabels, getAgentVolume } from './names.ts'

/** The files of Node have about 130 MB. */
const COPY_TIMEOUT_MS = 10 * 60_000

export class AgentVolume {
  readonly name: string
  readonly #engine: Engine
  readonly #files: AgentFiles
  /** The time of the creation of the volume that has the current build. */
  #filled: string | undefined
  #filling: Promise<void> | undefined

  constructor(engine: Engine, files: AgentFiles) {
    this.name = getAgentVolume(engine.deploymentId)
    this.#engine = engine
    this.#files = files
  }

  /** Ensures that the volume exists and has the current build, with which boxes start their agents from now on. */
  async ensure(): Promise<void> {
    const created = await this.#readCreation()
    if (created !== undefined && created === this.#filled) return
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined
    })
    await this.#filling
  }

  async #readCreation(): Promise<string | undefined> {
    const volume = await this.#engine.http
      .json<{ CreatedAt?: string }>({ method: 'GET', path: `/volumes/${this.name}` })
      .catch(ignoreStatus(404))
    return volume && (volume.CreatedAt ?? '')
  }

  async #fill(): Promise<void> {
    const { http, deploymentId, log } = this.#engine
    await http.json({
      method: 'POST',
      path: '/volumes/create',
      json: { Name: this.name, Labels: createLabels(deploymentId, 'agent') },
    })
    const created = await this.#readCreation()
    const { buildMarker, nodeMarker, buildId } = this.#files
    const dir = CONTAINER_PATHS.agentDir
    await withHelper(this.#engine, [{ volume: this.name, path: dir }], async (container) => {
      const [build, node, current] = await Promise.all(
        [buildMarker, nodeMarker, RUNTIME_LINKS.current].map((name) =>
          this.#readStat(container, `${dir}/${name}`),
        ),
      )
      const linkedBuild = current === undefined ? null : basename(current.linkTarget)
      const isCurrent = linkedBuild === buildId && build !== undefined && node !== undefined
      if (isCurrent) return
      await http.json({
        method: 'PUT',
        path: `/containers/${container}/archive`,
        query: { path: dir },
        headers: { 'content-type': 'application/x-tar' },
        content: this.#files.pack({
          hasBuild: build !== undefined,
          hasNode: node !== undefined,
          linkedBuild,
        }),
        timeoutMs: COPY_TIMEOUT_MS,
      })
      log.info({ engine: http.name, buildId }, 'the engine has the files of the agent')
    })
    this.#filled = created
  }

  /** undefined: there is no such file. */
  async #readStat(container: string, path: string): Promise<{ linkTarget: string } | undefined> {
    const response = await this.#engine.http
      .stream({ method: 'HEAD', path: `/containers/${container}/archive`, query: { path } })
      .catch(ignoreStatus(404))
    if (response === undefined) return undefined
    response.body.resume()
    const stat = Buffer.from(String(response.headers['x-docker-container-path-stat']), 'base64').toString()
    return JSON.parse(stat) as { linkTarget: string }
  }
}
