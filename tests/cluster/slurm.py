"""Runs a separate Slurm cluster on this machine: munge, slurmctld, and a slurmd for each of its nodes. It has
its own configuration, key, ports and spool, so that it does not touch a Slurm of the system."""

import glob
import os
import pwd
import socket
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))

CONFIG = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=20
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
{nodes}
PartitionName=usual Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def packages(folder):
    """Unpacks Slurm into the folder. Returns the reason when that fails, else ""."""
    done = subprocess.run([os.path.join(HERE, "slurm_packages.sh"), folder], capture_output=True,
                          text=True, check=False)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip().splitlines()[-1]


class Slurm:
    """prefix: the folder of the unpacked packages. folder: an empty one, for everything that the cluster writes.
    nodes: their names. Each node has one CPU."""

    def __init__(self, prefix, folder, nodes):
        self.prefix, self.folder, self.nodes = prefix, folder, nodes
        self.processes = {}
        libraries = glob.glob(prefix + "/usr/lib/*-linux-gnu")[0]
        plugins = libraries + "/slurm-wlm"
        ports = free_ports(1 + len(nodes))
        os.mkdir(folder + "/state")
        self.environment = {
            **os.environ, "SLURM_CONF": folder + "/slurm.conf",
            "LD_LIBRARY_PATH": f"{plugins}:{libraries}",
            "PATH": f"{prefix}/usr/bin:{prefix}/usr/sbin:{os.environ['PATH']}"}
        lines = [f"NodeName={node} NodeHostname={node} NodeAddr=127.0.0.1 Port={port} CPUs=1"
                 for node, port in zip(nodes, ports[1:])]
        with open(folder + "/slurm.conf", "w", encoding="utf-8") as file:
            file.write(CONFIG.format(host=socket.gethostname().split(".")[0], ports=ports, folder=folder,
                                     user=pwd.getpwuid(os.getuid()).pw_name, plugins=plugins,
                                     nodes="\n".join(lines)))

    def spawn(self, name, *command):
        with open(f"{self.folder}/{name}.out", "w", encoding="utf-8") as log:
            self.processes[name] = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True)

    def start(self):
        with open(self.folder + "/munge.key", "wb") as file:
            os.fchmod(file.fileno(), 0o400)
            file.write(os.urandom(128))
        munge = {name: f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "pid", "log", "seed")}
        self.spawn("munged", f"{self.prefix}/usr/sbin/munged", "--foreground", "--force",
                   f"--socket={self.folder}/munge.socket", *munge.values())
        self.wait(lambda: os.path.exists(self.folder + "/munge.socket"), "munged", 10)
        self.spawn("slurmctld", f"{self.prefix}/usr/sbin/slurmctld-wlm", "-D")
        for node in self.nodes:
            self.spawn("slurmd-" + node, f"{self.prefix}/usr/sbin/slurmd-wlm", "-D", "-N", node,
                       "-d", f"{self.prefix}/usr/sbin/slurmstepd-wlm")
        self.wait(lambda: self.call("sinfo", "-h", "-N", "-p", "usual", "-o", "%T", check=False).split() ==
                  ["idle"] * len(self.nodes), "the nodes", 30)

    def stop(self):
        """Cancels all jobs and ends the processes of the cluster."""
        self.call("scancel", "--user", pwd.getpwuid(os.getuid()).pw_name, check=False)
        end = time.monotonic() + 10
        while self.call("squeue", "-h", check=False) and time.monotonic() < end:
            time.sleep(0.1)
        for name in reversed(self.processes):
            self.processes[name].terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def call(self, *command, check=True, **options):
        """Runs a command of Slurm and returns what it printed."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False,
                              **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def wait(self, condition, what, seconds):
        """Returns once condition() holds. After the time limit it raises, with the ends of the cluster's logs."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not so after {seconds} s\n{self.logs()}")
            time.sleep(0.05)

    def logs(self):
        text = [self.call("squeue", check=False), self.call("sinfo", "-N", check=False)]
        for path in sorted(glob.glob(self.folder + "/*.out") + glob.glob(self.folder + "/../*.log")):
            with open(path, encoding="utf-8", errors="replace") as file:
                text.append(f"== {path}\n{file.read()[-2000:]}")
        return "\n".join(text)

    def node_of(self, job):
        return self.call("squeue", "-h", "-j", job, "-o", "%N", check=False)

    def wait_all(self, seconds=120):
        self.wait(lambda: not self.call("squeue", "-h"), "the end of all jobs", seconds)
