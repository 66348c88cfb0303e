import sys, numpy as np, superarm as sa
from math import log, exp
from superarm.explore.plain import PlainRule, Choice
D="../shared/data/"
class Cover(PlainRule):
    name="cover-proto"; n_decided=2; n_memory=4
    def __init__(self,*,coverage=.95,eta=.1,warm=10000,beta=.25,how="half",set_size=1,seed=0,labels=None):
        super().__init__(set_size=set_size,seed=seed,labels=labels); self.coverage,self.eta,self.warm,self.beta,self.how=coverage,eta,warm,beta,how
    def largest(self,n,m): return n
    def log_size(self,n,m): return 4
    def choose(self,M):
        s=M.scores.astype(float); n=len(s); p=np.exp(s-s.max()); p/=p.sum()
        key=s+1e-6*np.array([M.uniform(10+i) for i in range(n)]) if s.max()-s.min()<1e-5 else s
        order=np.argsort(-key,kind="stable")
        if M.round<self.warm:
            c=np.cumsum(p[order]);
            if self.how=="half":
                j=int(np.argmin(abs(c-.5)))+1
                return Choice(order[:j],1.0,draw_log=[0,0,0,0])
            if self.how=="half2": # never the runner up etc: half but drop top2 if p1 big
                j=int(np.argmin(abs(c-.5)))+1
                S=list(order[:j]);
                return Choice(S,1.0,draw_log=[0,0,0,0])
            if self.how=="rank4":
                S=[order[0]]; rest=[r for r in order[1:7]]
                b=[min(1,2*p[r]/max(1e-9,1-p[order[0]]))*(p[r]/p[order[0]])**.1 for r in order[1:4]]
                u=M.uniform(0); C=np.concatenate([[0],np.cumsum(b)]); gone=[i for i in range(3) for v in (u,u+1) if C[i]<=v<C[i+1]]
                S=[order[0]]+[r for i,r in enumerate(order[1:6]) if i not in gone]; return Choice(S[:4],1.0,draw_log=[0,0,0,0])
        q=M.memory[0] if M.memory[1] else log(n)
        T=[r for r in order if p[r]>=exp(-q)] or [order[0]]
        cost=0.0
        if self.beta>0 and len(T)>1:
            a=1-self.coverage; rest=max(1e-9,1-p[T[0]])
            b=np.array([min(1,2*p[r]/rest)*(p[r]/p[T[0]])**.3 for r in T[1:]]); cost=float((b*p[T[1:]]).sum())
            t,Mc=M.decided; qb=1.0 if Mc<=0 else min(1.0,self.beta*a*(t+1)/Mc)
            C=np.concatenate([[0],np.cumsum(qb*b)]); u=M.uniform(0)
            gone=[i for i in range(len(b)) for v in (u,u+1) if C[i]<=v<C[i+1]]
            T=[T[0]]+[r for i,r in enumerate(T[1:]) if i not in gone]
        return Choice(T,1.0,draw_log=[1,cost,q,n])
    def on_decided(self,decided,log_):
        if log_[0]: decided[0]+=1; decided[1]+=log_[1]
    def on_feedback(self,decided,memory,log_,hit):
        if not log_[0]: return
        if not memory[1]: memory[1]=1; memory[0]=log(log_[3])
        memory[0]=max(0.0,memory[0]+self.eta*((not hit)-(1-self.coverage)))
    @classmethod
    def draw(cls,*a): raise NotImplementedError
def data(name):
    z=np.load(D+name+".npz"); return z["X"].astype(np.float32), z["y"].astype(np.int64)
def go(name,T=50000,seed=0,**kw):
    X,y=data(name); k=y.max()+1; r=np.random.default_rng(seed)
    order=np.concatenate([r.permutation(len(X)) for _ in range(T//len(X)+1)])[:T]
    l=sa.SetLogit(n_labels=int(k),n_features=X.shape[1],set_size=1,seed=seed,explore=Cover(**kw))
    miss=np.zeros(T,bool); size=np.zeros(T,int); err=np.zeros(T,bool)
    for t,i in enumerate(order):
        d=l.decide(X[i]); h=int(y[i]) in d.labels; l.update(d,hit=h); miss[t]=not h; size[t]=len(d.labels); err[t]=d.top[0]!=y[i]
    w=kw.get("warm",10000); c=1-miss
    win=[c[a:a+2500].mean() for a in range(w,T-2499,2500)]
    print(name,kw,f"cover {c[w:].mean():.4f} min window {min(win):.3f} size 2nd half {size[T//2:].mean():.2f} err 2nd half {err[T//2:].mean():.3f} err at warm-up end {err[max(0,w-2000):w].mean() if w else 0:.3f} after {err[w:w+2000].mean():.3f}",flush=True)
if __name__=="__main__":
    name=sys.argv[1]; 
    for a in sys.argv[2:]: go(name,**eval(f"dict({a})"))
