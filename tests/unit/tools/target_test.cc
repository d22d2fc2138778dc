// SPDX-License-Identifier: GPL-2.0-or-later
#include "target.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options.h"

using namespace tern::tools;

namespace {

/* A process in a container: its file system at @folder is in its own mount namespace, and it has
 * mapped a library from there. */
class Contained {
public:
	explicit Contained(const std::string &folder) : library_(folder + "/libtern.so.1.0")
	{
		int ready[2];

		EXPECT_EQ(pipe(ready), 0);
		pid_ = fork();
		if (!pid_) {
			close(ready[0]);
			const int error = enter(folder);
			if (write(ready[1], &error, sizeof(error)) == sizeof(error))
				pause();
			_exit(1);
		}
		close(ready[1]);
		EXPECT_EQ(read(ready[0], &error_, sizeof(error_)), ssize_t{sizeof(error_)});
		close(ready[0]);
	}
	~Contained()
	{
		kill(pid_, SIGKILL);
		waitpid(pid_, nullptr, 0);
	}
	Contained(const Contained &) = delete;
	Contained &operator=(const Contained &) = delete;

	uint32_t pid() const { return static_cast<uint32_t>(pid_); }
	int error() const { return error_; }
	const std::string &library() const { return library_; }

private:
	/* Returns 0 or an errno. */
	int enter(const std::string &folder) const
	{
		if (unshare(CLONE_NEWNS) ||
		    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
		    mount("tmpfs", folder.c_str(), "tmpfs", 0, nullptr))
			return errno;
		const int file = open(library_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (file < 0 || ftruncate(file, 4096) ||
		    mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED)
			return errno;
		return 0;
	}

	const std::string library_;
	pid_t pid_ = -1;
	int error_ = -1;
};

class Folder {
public:
	Folder() { EXPECT_NE(mkdtemp(path_), nullptr); }
	~Folder() { std::filesystem::remove_all(path_); }
	Folder(const Folder &) = delete;
	Folder &operator=(const Folder &) = delete;

	std::string path() const { return path_; }

private:
	char path_[32] = "/tmp/tern-target-XXXXXX";
};

TEST(Provider, OfAProcessIsFoundThroughItsRoot)
{
	const Folder folder;
	const Contained process(folder.path());

	if (process.error() == EPERM)
		GTEST_SKIP() << "no right to make a mount namespace";
	ASSERT_EQ(process.error(), 0);
	EXPECT_FALSE(std::filesystem::exists(process.library())) << "it is not to be seen here";
	EXPECT_EQ(find_provider("", process.pid()),
	          "/proc/" + std::to_string(process.pid()) + "/root" + process.library());
}

TEST(Provider, ThatIsGivenIsFoundBehindItsLinks)
{
	const Folder folder;
	const std::string link = folder.path() + "/libtern.so";

	std::filesystem::create_symlink("/dev/null", link);
	EXPECT_EQ(find_provider(link, 0), "/dev/null");
	EXPECT_THROW(find_provider(folder.path() + "/none", 0), Error);
}

/* A child that ends when it is told to. It is waited for when the object is destroyed. */
class Child {
public:
	Child()
	{
		EXPECT_EQ(pipe(pipe_), 0);
		pid_ = fork();
		if (!pid_) {
			char byte;
			close(pipe_[1]);
			_exit(static_cast<int>(read(pipe_[0], &byte, 1)));
		}
		close(pipe_[0]);
	}
	~Child() { waitpid(pid_, nullptr, 0); }
	Child(const Child &) = delete;
	Child &operator=(const Child &) = delete;

	uint32_t pid() const { return static_cast<uint32_t>(pid_); }

	/* It is a zombie then. */
	void end()
	{
		siginfo_t info;
		close(pipe_[1]);
		EXPECT_EQ(waitid(P_PID, pid(), &info, WEXITED | WNOWAIT), 0);
	}

private:
	int pipe_[2] = {-1, -1};
	pid_t pid_ = -1;
};

TEST(Process, HasEndedBeforeItsParentWaitsForIt)
{
	Child child;
	const Process process(child.pid());

	EXPECT_FALSE(process.has_ended());
	EXPECT_TRUE(is_alive(child.pid()));
	child.end();
	EXPECT_TRUE(process.has_ended());
	EXPECT_FALSE(is_alive(child.pid()));
}

TEST(Process, ThatIsNoneHasEnded)
{
	std::optional<Child> child(std::in_place);
	const uint32_t pid = child->pid();

	child->end();
	child.reset();
	EXPECT_TRUE(Process(pid).has_ended());
	EXPECT_FALSE(is_alive(pid));
	EXPECT_FALSE(is_alive(0)) << "no process has this number";
}

TEST(Process, AnyNeverEnds)
{
	EXPECT_FALSE(Process(0).has_ended());
}

} // namespace
