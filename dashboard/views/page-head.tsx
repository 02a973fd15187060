// The heading of a page of the workspace, with the command that shows the same.
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { WORKSPACE_PAGES, type WorkspacePage } from '../data/routes.ts'
import { Commands } from './command.tsx'

type PageHeadProps = {
  page: WorkspacePage
  command: string | readonly string[]
  children?: ComponentChildren
}

export function PageHead({ page, command, children }: PageHeadProps) {
  const title = WORKSPACE_PAGES[page]
  useEffect(() => {
    document.title = `${title} · Boxwood`
  }, [title])
  return (
    <div class="page-head">
      <h1 tabIndex={-1}>{title}</h1>
      <Commands texts={[command].flat()} />
      {children !== undefined && <div class="actions">{children}</div>}
    </div>
  )
}
