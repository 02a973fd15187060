// Links to the directories that contain a directory or a file.
import { formatFilesPath, HOME, listParents } from '../../data/files.ts'
import { showHidden } from '../../data/visible-text.ts'

/** @param path of the directory @param file in the directory; null: the page shows the directory */
export function Breadcrumb({ boxName, path, file }: { boxName: string; path: string; file: string | null }) {
  const parents = path.startsWith('/') ? listParents(path) : []
  return (
    <nav aria-label="Directories" class="breadcrumb">
      <a href={formatFilesPath(boxName, HOME)}>Home</a>
      {parents.map((parent) => (
        <a
          key={parent.path}
          href={formatFilesPath(boxName, parent.path)}
          aria-current={file === null && parent.path === path ? 'page' : undefined}
        >
          {showHidden(parent.name)}
        </a>
      ))}
      {file !== null && <span>› {showHidden(file)}</span>}
    </nav>
  )
}
